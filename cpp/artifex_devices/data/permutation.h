// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace artifex_devices {

/// Numbers that look random and depend on their arguments only: the finalizer of splitmix64.
uint64_t mixed_bits(uint64_t value) noexcept;
uint64_t mixed_bits(uint64_t first, uint64_t second) noexcept;

/// A seeded order of 0 .. size - 1 with random access, in constant memory.
///
/// A keyed bijection of [0, 2^bits), the smallest such range that has `size` numbers, is applied until the result is
/// below `size` (cycle walking): less than two times on average. Seeds select among many orders, not among all.
class Permutation {
 public:
  /// `size` is 1 or more.
  Permutation(uint64_t size, uint64_t key) noexcept;

  uint64_t operator()(uint64_t position) const noexcept {
    do position = shuffled(position);
    while (position >= size_);
    return position;
  }

 private:
  static constexpr int kRounds = 10;

  struct Round {
    uint64_t multiplier;
    uint64_t addend;
  };

  uint64_t shuffled(uint64_t x) const noexcept {
    for (const Round& round : rounds_) {
      x = (x * round.multiplier + round.addend) & mask_;
      x ^= x >> shift_;
    }
    return x;
  }

  uint64_t size_;
  uint64_t mask_;
  int shift_;
  std::array<Round, kRounds> rounds_;
};

}  // namespace artifex_devices
