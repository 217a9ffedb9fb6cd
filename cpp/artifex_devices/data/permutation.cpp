// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/data/permutation.h"

#include <algorithm>
#include <bit>

namespace artifex_devices {

uint64_t mixed_bits(uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

uint64_t mixed_bits(uint64_t first, uint64_t second) noexcept { return mixed_bits(mixed_bits(first) ^ second); }

Permutation::Permutation(uint64_t size, uint64_t key) noexcept : size_(size) {
  const int bits = std::max(1, static_cast<int>(std::bit_width(size - 1)));
  mask_ = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  shift_ = (bits + 1) / 2;
  for (Round& round : rounds_) {
    round.multiplier = (key = mixed_bits(key)) | 1;
    round.addend = key = mixed_bits(key);
  }
}

}  // namespace artifex_devices
