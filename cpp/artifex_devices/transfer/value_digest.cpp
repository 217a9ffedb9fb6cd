// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/value_digest.h"

#include <bit>
#include <cstring>
#include <memory>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/device/executor.h"

namespace artifex_devices {
namespace {

constexpr size_t kLanes = 8;  // independent, which lets multiplications overlap

/// All bits of both count in all bits of the result: the product's halves are folded.
uint64_t mix(uint64_t hash, uint64_t word) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{hash ^ 0x9E3779B97F4A7C15ull} * (word ^ 0xFF51AFD7ED558CCDull);
  const uint64_t folded = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  return folded + std::rotl(hash ^ word, 29) + 0x2545F4914F6CDD1Dull;
}

std::array<uint64_t, 2> digest_of_bytes(const std::byte* data, int64_t bytes, uint64_t seed) noexcept {
  std::array<uint64_t, kLanes> lanes{};
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = mix(seed, i);
  constexpr auto kStep = static_cast<int64_t>(kLanes * sizeof(uint64_t));
  std::array<uint64_t, kLanes> words{};
  const auto take = [&](const std::byte* from, size_t count) {
    std::memcpy(words.data(), from, count);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = mix(lanes[i], words[i]);
  };
  int64_t at = 0;
  for (; at + kStep <= bytes; at += kStep) take(data + at, static_cast<size_t>(kStep));
  if (at < bytes) {
    words.fill(0);
    take(data + at, static_cast<size_t>(bytes - at));
  }
  std::array<uint64_t, 2> digest{mix(seed, static_cast<uint64_t>(bytes)), mix(~seed, static_cast<uint64_t>(bytes))};
  for (size_t i = 0; i < kLanes; ++i) {
    digest[0] = mix(digest[0], lanes[i]);
    digest[1] = mix(digest[1], std::rotl(lanes[i], 32));
  }
  for (uint64_t& half : digest) {
    half ^= half >> 32;
    half *= 0xFF51AFD7ED558CCDull;
    half ^= half >> 29;
  }
  return digest;
}

}  // namespace

std::array<uint64_t, 2> digest_of_value(const HostView& value) {
  uint64_t seed = mix(static_cast<uint64_t>(value.dtype), static_cast<uint64_t>(value.shape.size()));
  const int64_t size = itemsize(value.dtype);
  int64_t bytes = size;
  for (const int64_t extent : value.shape) {
    seed = mix(seed, static_cast<uint64_t>(extent));
    bytes *= extent;
  }
  if (bytes == 0) return digest_of_bytes(nullptr, 0, seed);
  const auto* data = static_cast<const std::byte*>(value.data);
  if (is_dense(value.shape, value.byte_strides, size)) return digest_of_bytes(data, bytes, seed);
  const auto dense = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
  CopyBatch batch;
  batch.add(StridedCopy(dense.get(), row_major_strides(value.shape, size), data, value.byte_strides, value.shape, size),
            kAnyLane);
  host_executor().run(batch);
  return digest_of_bytes(dense.get(), bytes, seed);
}

}  // namespace artifex_devices
