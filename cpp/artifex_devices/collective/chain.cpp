// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/collective/chain.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/collective/halves.h"
#include "artifex_devices/collective/reduce.h"

namespace artifex_devices {
namespace {

// The work of one core at a time.
constexpr int64_t kPartBytes = int64_t{32} << 10;

HostView view_of(const void* data, DType dtype, int64_t count) {
  HostView view;
  view.data = const_cast<void*>(data);
  view.dtype = dtype;
  view.shape = Dims{count};
  view.byte_strides = Dims{itemsize(dtype)};
  view.writable = true;
  return view;
}

const std::byte* at_element(const HostView& view, int64_t element) {
  return static_cast<const std::byte*>(view.data) + element * itemsize(view.dtype);
}

ReductionChain::Link link_to(SharedChannels& channels, int64_t peer) {
  if (peer < 0) return {};
  return {&channels.stream_from(peer), &channels.stream_to(peer)};
}

}  // namespace

ReductionChain::ReductionChain(SharedChannels& channels, int64_t before, int64_t after, Reduction reduction,
                               std::vector<HostView> blocks, HostView out, Share share)
    : ReductionChain(link_to(channels, before), link_to(channels, after), SharedChannels::kPieceBytes, reduction,
                     std::move(blocks), std::move(out), share) {}

ReductionChain::ReductionChain(Link before, Link after, int64_t piece_bytes, Reduction reduction,
                               std::vector<HostView> blocks, HostView out, Share share)
    : from_before_(before.from),
      to_before_(before.to),
      from_after_(after.from),
      to_after_(after.to),
      reduction_(reduction),
      blocks_(std::move(blocks)),
      out_(std::move(out)),
      share_(share) {
  if (from_before_ == nullptr && from_after_ == nullptr)
    throw_error("chain: this process has no peer; expected at least one; call all_reduce");
  if (blocks_.empty() && from_before_ == nullptr)
    throw_error("chain: the first process has no blocks; expected 1 or more; give some");
  checked_bytes(out_.shape, out_.dtype, "chain");
  if (!blocks_.empty()) checked_bytes(blocks_[0].shape, out_.dtype, "chain");
  for (const HostView& block : blocks_) {
    if (block.dtype == out_.dtype && block.shape == blocks_[0].shape &&
        is_dense(block.shape, block.byte_strides, itemsize(block.dtype))) {
      continue;
    }
    throw_error(
        "chain: a block does not fit; expected dense {}{}, got {}{} with strides {}; use np.ascontiguousarray(x)",
        name(out_.dtype), to_string(blocks_[0].shape), name(block.dtype), to_string(block.shape),
        to_string(block.byte_strides));
  }
  end_ = share_.begin + checked_product(out_.shape, "chain");
  elements_ = blocks_.empty() ? end_ : checked_product(blocks_[0].shape, "chain");
  if (share_.begin < 0 || end_ > elements_ || share_.handed_on < 0 || share_.handed_on > elements_ ||
      !is_dense(out_.shape, out_.byte_strides, itemsize(out_.dtype))) {
    throw_error(
        "chain: out does not fit; expected dense memory for at most {} elements, got {} from {} on with strides {}",
        elements_, to_string(out_.shape), share_.begin, to_string(out_.byte_strides));
  }
  is_widened_ = half_type(out_.dtype) && (reduction == Reduction::kSum || reduction == Reduction::kProduct);
  carried_bytes_ = is_widened_ ? int64_t{sizeof(float)} : itemsize(out_.dtype);
  step_ = piece_bytes / carried_bytes_;
  pieces_ = pieces_below(elements_);
  if (to_before_ == nullptr) share_.handed_on = 0;
  if (to_after_ != nullptr) coming_back_ = pieces_below(std::max(end_, share_.handed_on));
  std::vector<HostView> nothing(blocks_.size() + 1, view_of(out_.data, out_.dtype, 0));
  all_reduce(reduction, nothing,
             nothing.back());  // raises for an unsupported reduction, before another process waits for it
}

bool ReductionChain::advance(std::chrono::nanoseconds timeout) {
  while (!is_done()) {
    check_interrupt();
    if (step()) continue;
    if (!poll_until(timeout, [&] { return step(); })) return false;
  }
  return true;
}

ReductionChain::Piece ReductionChain::piece(int64_t number) const noexcept {
  const int64_t begin = number * step_;
  return {begin, std::min(step_, elements_ - begin)};
}

/// Does one step if one is possible. Finished pieces come first, as other processes wait for them.
bool ReductionChain::step() { return take_back() || make(); }

bool ReductionChain::make() {
  if (made_ == pieces_) return false;
  if (from_before_ != nullptr && !from_before_->has_next()) return false;
  const Piece at = piece(made_);
  ChannelWriter* const channel = to_after_ != nullptr ? to_after_ : at.begin < share_.handed_on ? to_before_ : nullptr;
  if (channel != nullptr && !channel->has_room()) return false;
  if (channel == nullptr) unsent_.resize(step_ * carried_bytes_);
  std::byte* const target = channel != nullptr ? channel->slot() : unsent_.data();
  combine_piece(at, from_before_ != nullptr ? from_before_->slot() : nullptr, target);
  if (from_before_ != nullptr) from_before_->release();
  if (channel != nullptr) channel->publish();
  ++made_;
  if (to_after_ == nullptr) keep(at, target);  // a slot does not change until this process writes it again
  return true;
}

bool ReductionChain::take_back() {
  if (returned_ == coming_back_ || !from_after_->has_next()) return false;
  const Piece at = piece(returned_);
  if (at.begin < share_.handed_on) {
    if (!to_before_->has_room()) return false;
    std::memcpy(to_before_->slot(), from_after_->slot(), static_cast<size_t>(at.count * itemsize(out_.dtype)));
    to_before_->publish();
  }
  keep(at, from_after_->slot());
  from_after_->release();
  ++returned_;
  return true;
}

void ReductionChain::combine_piece(const Piece& at, const std::byte* carried, std::byte* target) {
  in_parts(at, [&](const Piece& part) {
    const int64_t offset = part.begin - at.begin;
    const int64_t size = carried_bytes_;
    const bool narrows = is_widened_ && to_after_ == nullptr;
    combine_part(part, carried == nullptr ? nullptr : carried + offset * size,
                 target + offset * (narrows ? itemsize(out_.dtype) : size));
  });
}

void ReductionChain::combine_part(const Piece& at, const std::byte* carried, std::byte* target) const {
  const DType dtype = is_widened_ ? DType::kFloat32 : out_.dtype;
  std::vector<HostView> inputs;
  inputs.reserve(blocks_.size() + 1);
  if (carried != nullptr) inputs.push_back(view_of(carried, dtype, at.count));
  if (!is_widened_) {
    for (const HostView& block : blocks_) inputs.push_back(view_of(at_element(block, at.begin), dtype, at.count));
    return all_reduce(reduction_, inputs, view_of(target, dtype, at.count));
  }
  const ArithmeticType type = *half_type(out_.dtype);
  std::vector<float> wide(blocks_.size() * static_cast<size_t>(at.count));
  float* next = wide.data();
  for (const HostView& block : blocks_) {
    widen(type, at_element(block, at.begin), at.count, next);
    inputs.push_back(view_of(next, dtype, at.count));
    next += at.count;
  }
  if (to_after_ != nullptr) return all_reduce(reduction_, inputs, view_of(target, dtype, at.count));
  std::vector<float> total(at.count);
  all_reduce(reduction_, inputs, view_of(total.data(), dtype, at.count));
  narrow(type, total.data(), at.count, target);
}

void ReductionChain::keep(const Piece& at, const std::byte* finished) const {
  const int64_t begin = std::max(at.begin, share_.begin);
  const int64_t end = std::min(at.begin + at.count, end_);
  if (begin >= end) return;
  const int64_t size = itemsize(out_.dtype);
  const bool streams = (end_ - share_.begin) * size > stream_bytes();
  in_parts({begin, end - begin}, [&](const Piece& part) {
    std::byte* target = static_cast<std::byte*>(out_.data) + (part.begin - share_.begin) * size;
    const std::byte* source = finished + (part.begin - at.begin) * size;
    if (!streams) {
      std::memcpy(target, source, part.count * size);
      return;
    }
    stream_copy(target, source, part.count * size);
    stream_fence();
  });
}

template <class Body>
void ReductionChain::in_parts(const Piece& at, const Body& body) const {
  const int64_t step = kPartBytes / carried_bytes_;
  const int64_t parts = (at.count + step - 1) / step;
  const auto run = [&](int64_t part) { body(Piece{at.begin + part * step, std::min(step, at.count - part * step)}); };
  if (WorkerPool::process().max_workers() < 2) {
    for (int64_t part = 0; part < parts; ++part) run(part);
  } else {
    WorkerPool::process().parallel_for(parts, kAnyLane, run);
  }
}

}  // namespace artifex_devices
