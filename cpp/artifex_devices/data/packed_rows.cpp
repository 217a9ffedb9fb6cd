// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/data/packed_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMostEmptySteps = 1 << 17;  // steps without a token in a row, after which an endless order is refused
constexpr int kStepsAtOnce = 2048;            // between two checks for Ctrl-C: about 20 ms

}  // namespace

PackedRows::PackedRows(Order::Ptr order, std::vector<std::span<const int64_t>> lengths, int64_t row_length, bool whole)
    : order_(std::move(order)), lengths_(std::move(lengths)), row_length_(row_length), whole_(whole) {
  if (row_length < 1) throw_error("data.pack: length is {}; expected 1 or more; write length=4096", row_length);
  if (static_cast<int>(lengths_.size()) != order_->leaves()) {
    throw_error("data.pack: lengths of {} sources; expected one array for each of {}; give lengths for all sources",
                lengths_.size(), order_->leaves());
  }
  for (const std::span<const int64_t> of_leaf : lengths_) {
    const auto negative = std::find_if(of_leaf.begin(), of_leaf.end(), [](int64_t length) { return length < 0; });
    if (negative != of_leaf.end()) {
      throw_error("data.pack: the length of sample {} is {}; expected 0 or more; correct lengths",
                  negative - of_leaf.begin(), *negative);
    }
  }
}

int64_t PackedRows::samples_in_step(size_t step) const noexcept {
  return std::min(kStep, order_->size() - static_cast<int64_t>(step) * kStep);
}

void PackedRows::lengths_of(int64_t position, std::vector<int64_t>& found) const {
  std::vector<int64_t> positions(found.size());
  std::vector<int32_t> leaf(found.size());
  std::iota(positions.begin(), positions.end(), position);
  order_->resolve(positions, {.leaf = leaf, .index = found, .keys = {}});
  for (size_t i = 0; i < found.size(); ++i) {
    const std::span<const int64_t> of_leaf = lengths_[static_cast<size_t>(leaf[i])];
    if (found[i] >= static_cast<int64_t>(of_leaf.size())) {
      throw_error("data.pack: {} lengths for a source with more samples; expected one for each; correct lengths",
                  of_leaf.size());
    }
    found[i] = of_leaf[static_cast<size_t>(found[i])];
    if (whole_ && found[i] > row_length_) {
      throw_error(
          "data.pack: the sample at position {} has {} tokens; expected at most {}, the length of a row; write "
          "too_long=\"split\" or a larger length",
          positions[i], found[i], row_length_);
    }
  }
}

/// Adds up the lengths of one more step; returns false at the end of the order.
bool PackedRows::add_step() const {
  const int64_t count = samples_in_step(sums_.size() - 1);
  if (count <= 0) return false;
  std::vector<int64_t> lengths(static_cast<size_t>(count));
  lengths_of(static_cast<int64_t>(sums_.size() - 1) * kStep, lengths);
  int64_t sum = sums_.back();
  for (const int64_t length : lengths) {
    const auto next = checked_add(sum, length);
    if (!next)
      throw_error("data.pack: the lengths do not fit 63 bits; expected a smaller sum; use take(n) before pack");
    sum = *next;
  }
  empty_steps_ = sum == sums_.back() ? empty_steps_ + 1 : 0;
  if (order_->endless() && empty_steps_ > kMostEmptySteps) {
    throw_error("data.pack: an endless stream of samples without tokens; expected a length above 0; correct lengths");
  }
  sums_.push_back(sum);
  return true;
}

/// Adds up lengths until there are more than `tokens`; returns false where the order ends before.
bool PackedRows::has_tokens(int64_t tokens) const {
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      for (int step = 0; step < kStepsAtOnce; ++step) {
        if (sums_.back() > tokens) return true;
        if (!add_step()) return false;
      }
    }
    check_interrupt();  // may run Python, so without the lock
  }
}

std::optional<int64_t> PackedRows::size() const {
  if (order_->endless()) return std::nullopt;
  has_tokens(INT64_MAX);
  const std::scoped_lock lock(mutex_);
  return sums_.back() / row_length_ + (sums_.back() % row_length_ != 0);
}

std::vector<int64_t> PackedRows::sums() const {
  const std::scoped_lock lock(mutex_);
  return sums_;
}

int64_t PackedRows::sum_count() const {
  const std::scoped_lock lock(mutex_);
  return std::ssize(sums_);
}

bool PackedRows::take_sums(std::span<const int64_t> sums) {
  if (sums.empty() || sums.front() != 0 || !std::ranges::is_sorted(sums)) return false;
  if (sums.size() > 1 && samples_in_step(sums.size() - 2) <= 0) return false;
  const std::scoped_lock lock(mutex_);
  if (sums.size() <= sums_.size()) return true;
  sums_.assign(sums.begin(), sums.end());
  const auto last = std::ranges::lower_bound(sums_, sums_.back());
  empty_steps_ = sums_.end() - last - 1;
  return true;
}

void PackedRows::append_pieces(int64_t row, std::vector<Piece>& pieces) const {
  const auto start = row < 0 ? std::nullopt : checked_mul(row, row_length_);
  size_t step = 0;
  int64_t before = 0;  // tokens before the samples of the step
  if (!start || !has_tokens(*start)) {
    throw_error<IndexOutOfRange>("data.pack: there is no row {}; expected rows of the stream; ask for len(rows) first",
                                 row);
  }
  {
    const std::scoped_lock lock(mutex_);
    step = static_cast<size_t>(std::upper_bound(sums_.begin(), sums_.end(), *start) - sums_.begin()) - 1;
    before = sums_[step];
  }
  const int64_t end = checked_add(*start, row_length_).value_or(INT64_MAX);
  std::vector<int64_t> lengths;
  for (; before < end; ++step) {
    const int64_t count = samples_in_step(step);
    if (count <= 0) return;
    lengths.resize(static_cast<size_t>(count));
    lengths_of(static_cast<int64_t>(step) * kStep, lengths);
    for (size_t i = 0; i < lengths.size() && before < end; ++i) {
      const int64_t from = std::max(before, *start);
      const int64_t to = std::min(before + lengths[i], end);
      if (from < to)
        pieces.push_back({static_cast<int64_t>(step) * kStep + static_cast<int64_t>(i), from - before, to - from});
      before += lengths[i];
    }
  }
}

}  // namespace artifex_devices
