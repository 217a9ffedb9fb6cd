// SPDX-License-Identifier: Apache-2.0
// Bytes that tests fill, copy and compare, at a speed that the sanitizers leave bearable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace artifex_devices::test {

/// Compared by one memcmp: std::vector compares std::byte one at a time.
struct ByteArray : std::vector<std::byte> {
  using vector::vector;
  friend bool operator==(const ByteArray& a, const ByteArray& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }
};

/// `count` random bytes, eight of each number drawn.
inline ByteArray random_bytes(std::mt19937_64& random, int64_t count) {
  ByteArray bytes(static_cast<size_t>(count));
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t drawn = random();
    std::memcpy(bytes.data() + at, &drawn, std::min(sizeof drawn, bytes.size() - at));
  }
  return bytes;
}

}  // namespace artifex_devices::test
