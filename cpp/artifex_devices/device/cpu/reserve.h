// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace artifex_devices {

/// Preallocated pages, in units of 2 MiB, allocated first-fit; adjacent free pieces are merged. Allocates nothing after
/// construction. Not thread-safe.
class Reserve {
 public:
  static constexpr int64_t kUnit = int64_t{2} << 20;

  /// `data` is aligned to kUnit; `bytes` is a multiple of it.
  Reserve(std::byte* data, int64_t bytes) : data_(data), used_(static_cast<size_t>(bytes / kUnit), false) {}

  /// Returns null if it is retired, or no piece of that size is free.
  std::byte* cut(int64_t bytes) noexcept;
  void give(std::byte* data, int64_t bytes) noexcept;
  bool contains(const std::byte* data) const noexcept { return data >= data_ && data < data_ + bytes(); }
  /// No owner is left: nothing more is cut from it.
  void retire() noexcept { is_retired_ = true; }

  std::byte* data() const noexcept { return data_; }
  int64_t bytes() const noexcept { return static_cast<int64_t>(used_.size()) * kUnit; }
  /// Bytes that can be cut.
  int64_t free_bytes() const noexcept { return is_retired_ ? 0 : bytes() - used_bytes(); }
  int64_t used_bytes() const noexcept { return used_units_ * kUnit; }
  /// Whether its pages can be returned to the system.
  bool is_done() const noexcept { return is_retired_ && used_units_ == 0; }

  static int64_t rounded(int64_t bytes) noexcept { return (bytes + kUnit - 1) / kUnit * kUnit; }

 private:
  std::byte* data_;
  std::vector<bool> used_;
  int64_t used_units_ = 0;
  bool is_retired_ = false;
};

}  // namespace artifex_devices
