// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Private to device/arena*.cpp.
namespace artifex_devices {

/// Preallocated pages, in units of 2 MiB, allocated first-fit; adjacent free pieces are merged. Allocates nothing after
/// construction. Not thread-safe.
class ArenaReserve {
 public:
  static constexpr int64_t kUnit = int64_t{2} << 20;

  /// `data` is aligned to kUnit; `bytes` is a multiple of it.
  ArenaReserve(std::byte* data, int64_t bytes) : data_(data), used_(static_cast<size_t>(bytes / kUnit), false) {}

  /// Returns null if no piece of that size is free.
  std::byte* cut(int64_t bytes) noexcept;
  void give(std::byte* data, int64_t bytes) noexcept;
  bool contains(const std::byte* data) const noexcept { return data >= data_ && data < data_ + bytes(); }

  std::byte* data() const noexcept { return data_; }
  int64_t bytes() const noexcept { return static_cast<int64_t>(used_.size()) * kUnit; }
  int64_t free_bytes() const noexcept { return bytes() - used_units_ * kUnit; }
  bool is_unused() const noexcept { return used_units_ == 0; }

  /// No owner is left: nothing more is allocated from it, and it is destroyed when the last piece is returned.
  bool is_retired = false;

  static int64_t rounded(int64_t bytes) noexcept { return (bytes + kUnit - 1) / kUnit * kUnit; }

 private:
  std::byte* data_;
  std::vector<bool> used_;
  int64_t used_units_ = 0;
};

}  // namespace artifex_devices
