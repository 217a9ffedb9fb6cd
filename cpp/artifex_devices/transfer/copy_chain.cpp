// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/copy_chain.h"

#include <algorithm>
#include <cstring>

namespace artifex_devices {
namespace {

constexpr int64_t kShortBox = 256;   // bytes; dense boxes up to here are copied without a StridedCopy
constexpr int64_t kShortestRun = 4;  // boxes; joining fewer costs more than it saves
constexpr size_t kMostPending = 8;   // forms of runs; a destination that overlaps a row of source tiles has up to 3

int64_t distance(const std::byte* from, const std::byte* to) noexcept {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from));
}

}  // namespace

BoxForm joined(const BoxForm& form, const BoxRun& run) {
  BoxForm whole{Dims{run.count}, Dims{run.to_step}, Dims{run.from_step}, form.itemsize, form.transfer_bytes, form.lane};
  for (int64_t d = 0; d < form.shape.size(); ++d) {
    whole.shape.push_back(form.shape[d]);
    whole.to_strides.push_back(form.to_strides[d]);
    whole.from_strides.push_back(form.from_strides[d]);
  }
  return whole;
}

void CopyChain::begin(BoxForm form) {
  end_run();
  if (form == form_) return;
  one_.reset();
  form_ = std::move(form);
  dense_bytes_ = 0;
  if (is_dense(form_.shape, form_.to_strides, form_.itemsize) &&
      is_dense(form_.shape, form_.from_strides, form_.itemsize)) {
    dense_bytes_ = form_.itemsize;
    for (const int64_t length : form_.shape) dense_bytes_ *= length;
    if (dense_bytes_ > kShortBox) dense_bytes_ = 0;
  }
}

void CopyChain::end_run() {
  const BoxRun run = std::exchange(run_, {});
  if (run.count == 0) return;
  if (run.count >= kShortestRun) return join(joined(form_, run), run.to, run.from);
  for (int64_t i = 0; i < run.count; ++i) copy_one(run.to + i * run.to_step, run.from + i * run.from_step);
}

void CopyChain::join(const BoxForm& form, std::byte* to, const std::byte* from) {
  const auto found = std::ranges::find(pending_, form, &Pending::form);
  if (found != pending_.end()) {
    if (found->run.take(to, from)) return;
    joined(form, found->run).copy(found->run.to, found->run.from).run();
    found->run = {to, from, 1};
    return;
  }
  if (pending_.size() < kMostPending) {
    pending_.push_back({form, {to, from, 1}});
    return;
  }
  Pending& oldest = pending_[oldest_++ % kMostPending];
  joined(oldest.form, oldest.run).copy(oldest.run.to, oldest.run.from).run();
  oldest = {form, {to, from, 1}};
}

void CopyChain::flush() {
  end_run();
  for (const Pending& each : pending_) joined(each.form, each.run).copy(each.run.to, each.run.from).run();
  pending_.clear();
  oldest_ = 0;
}

void CopyChain::copy_one(std::byte* to, const std::byte* from) {
  if (dense_bytes_ > 0) {
    std::memcpy(to, from, dense_bytes_);
    return;
  }
  if (!one_ || !one_->shift(distance(one_to_, to), distance(one_from_, from))) one_.emplace(form_.copy(to, from));
  one_to_ = to;
  one_from_ = from;
  one_->run();
}

}  // namespace artifex_devices
