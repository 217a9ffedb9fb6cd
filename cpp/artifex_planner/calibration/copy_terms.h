// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_devices/sharding/sharding.h"
#include "artifex_planner/reshard/direct_copies.h"

namespace artifex_devices::planner {

/// Terms of the seconds of copies inside one machine: calls, copies and bytes, each times a coefficient that
/// `calibrate` fits. Bytes are counted once, although each is read once and written once.
///   calls, calls on workers   a transfer below CopyLimits::parallel_bytes; from there on
///   copies                    from one buffer to another
///   alone                     bytes that the calling thread copies by itself
///   cached, warm, memory      bytes that workers copy: with plain stores; past the cache from a source that the last
///                             caches hold; past it from memory. Sizes between warm and memory are interpolated by
///                             the logarithm of the size.
///   read, written in runs     additional cost of bytes that are dense only in short stretches of the source or of the
///                             destination. Lengths between two of kRunBytes are interpolated as if each stretch
///                             took a fixed time. Stretches from kLongRun bytes on have no additional cost, and
///                             stretches from a cache line on have one only if the bytes count as `memory`.
inline constexpr std::array<int64_t, 4> kRunBytes = {4, 32, 64, 512};
inline constexpr int64_t kLongRun = 16384;
inline constexpr int64_t kCacheLine = 64;
inline constexpr std::array<std::string_view, 15> kCopyTerms = {
    "calls",         "calls on workers", "copies",          "alone",           "cached",
    "warm",          "memory",           "read in 4 B",     "read in 32 B",    "read in 64 B",
    "read in 512 B", "written in 4 B",   "written in 32 B", "written in 64 B", "written in 512 B"};
using CopyTerms = std::array<double, kCopyTerms.size()>;

struct CopyLimits {
  int64_t parallel_bytes = int64_t{512} << 10;  // config().parallel_copy_bytes
  int64_t stream_bytes = int64_t{4} << 20;      // above it stores bypass the cache (base/stream_copy.h)
  int64_t cache_bytes = 0;                      // sum of the last-level caches; 0: not known, as if there were none
};

/// Dense copies of `bytes` together. Throws InvalidArgument for numbers below 0.
/// Example: 1 MiB in 4 copies is 1 call on workers, 4 copies and 1048576 cached bytes.
CopyTerms dense_copy_terms(int64_t bytes, int64_t copies, const CopyLimits& limits);

/// Direct copies between row-major buffers.
CopyTerms copy_terms(const DirectCopies& direct, const PlacedEnd& source, const PlacedEnd& destination,
                     int64_t itemsize, const CopyLimits& limits);

/// Bytes that are copied from one memory (BufferPlace::arena) to another.
struct MemoryBytes {
  ArenaIndex from = {};
  ArenaIndex to = {};
  int64_t bytes = 0;
  friend bool operator==(const MemoryBytes&, const MemoryBytes&) = default;
};
/// By `from`, then `to`; pairs without bytes are left out.
std::vector<MemoryBytes> bytes_by_memory(const DirectCopies& direct, const PlacedEnd& source,
                                         const PlacedEnd& destination);

/// Both for the direct copies of a reshard between devices of this process.
struct ReshardCopyTerms {
  CopyTerms terms{};
  std::vector<MemoryBytes> memories;
};
/// Throws InvalidArgument for devices of a cluster or of other processes, and for ends in memory of two kinds.
ReshardCopyTerms reshard_copy_terms(const Sharding& source, const Sharding& destination, const Dims& shape,
                                    int64_t itemsize, const CopyLimits& limits);

}  // namespace artifex_devices::planner
