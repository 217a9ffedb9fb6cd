// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// The inner loops of copies for one instruction set. None of them needs an alignment but where it says so, none reads
/// or writes outside of its units, and source and destination lie apart. Strides are in bytes and may be negative.
struct CopyKernels {
  /// Copies `lines` lines of 64 bytes to a destination at a line's start, past the cache (stream_copy.h). Where `ahead`
  /// is not null, as many lines from there are fetched meanwhile; any address may be given.
  void (*stream_lines)(std::byte* destination, const std::byte* source, int64_t lines, const std::byte* ahead);

  /// Copies `count` runs of `run` bytes, which lie `destination_stride` and `source_stride` apart. While one is copied
  /// the memory `ahead` bytes from its source is fetched (0: none).
  void (*copy_runs)(std::byte* destination, int64_t destination_stride, const std::byte* source, int64_t source_stride,
                    int64_t run, int64_t count, int64_t ahead);

  /// Copies `count` runs of `lines` lines each, past the cache; destinations are at a line's start and
  /// `destination_stride` apart, sources lie behind each other.
  void (*stream_rows)(std::byte* destination, int64_t destination_stride, const std::byte* source, int64_t lines,
                      int64_t count);

  /// As transpose_tile, for units of 1, 2, 4, 8 and 16 bytes. Meanwhile the tile `ahead` bytes from the source is
  /// fetched (0: none).
  void (*transpose)(std::byte* destination, const std::byte* source, int64_t row_stride, int64_t rows, int64_t columns,
                    int64_t unit, int64_t ahead);
};

/// The loops for active_isa().
const CopyKernels& copy_kernels() noexcept;

extern const CopyKernels copy_kernels_baseline;
#if defined(__x86_64__)
extern const CopyKernels copy_kernels_avx2;
extern const CopyKernels copy_kernels_avx512;
#endif

}  // namespace artifex_devices
