// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "artifex_devices/data/order.h"

namespace artifex_devices {

/// Samples of an order one after the other, cut into rows of equal length: only the last row has padding.
///
/// Keeps the number of tokens before every 512th sample, as far as rows were asked for. Threads share it.
class PackedRows {
 public:
  /// `lengths` has for each leaf of `order` the tokens of each sample; the spans must stay valid. Throws
  /// InvalidArgument for a negative length and a row length below 1. With `whole`, samples longer than a row are
  /// refused when they are met.
  PackedRows(Order::Ptr order, std::vector<std::span<const int64_t>> lengths, int64_t row_length, bool whole);

  /// Returns the number of rows; nothing for an endless order. The first call adds up all lengths.
  std::optional<int64_t> size() const;

  /// What a row has of a sample.
  struct Piece {
    int64_t position;  // of the sample in the order
    int64_t first;     // token of the sample
    int64_t count;
  };

  /// Returns the tokens before sample 0, 512, 1024 and so on of the order, as far as they were added up.
  std::vector<int64_t> sums() const;

  /// The number of sums.
  int64_t sum_count() const;

  /// Takes sums that the same order and lengths had before, instead of adding up lengths again. Returns false, and does
  /// nothing, for sums that are not ascending from 0 or too many for the order.
  bool take_sums(std::span<const int64_t> sums);

  /// Appends the pieces of a row, in order. Throws IndexOutOfRange for a row that does not exist.
  void append_pieces(int64_t row, std::vector<Piece>& pieces) const;

 private:
  static constexpr int64_t kStep = 512;

  /// Fills `found` with the tokens of the samples at `position` and after it.
  void lengths_of(int64_t position, std::vector<int64_t>& found) const;
  bool add_step() const;
  bool has_tokens(int64_t tokens) const;
  int64_t samples_in_step(size_t step) const noexcept;

  Order::Ptr order_;
  std::vector<std::span<const int64_t>> lengths_;
  int64_t row_length_;
  bool whole_;
  mutable std::mutex mutex_;
  mutable std::vector<int64_t> sums_{0};  // tokens before sample number kStep * i
  mutable int64_t empty_steps_ = 0;       // at the end of sums_, without a token
};

}  // namespace artifex_devices
