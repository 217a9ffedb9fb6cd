// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace artifex_devices {

/// The inner loops of copies for one instruction set. They need no alignment unless documented, read and write only
/// within their units, and need a source and destination that do not overlap. Strides are in bytes and may be negative.
struct CopyKernels {
  /// Copies `lines` lines of 64 bytes to a line-aligned destination with stores that bypass the cache (stream_copy.h).
  /// If `ahead` is not null, prefetches as many lines from there; any address is allowed.
  void (*stream_lines)(std::byte* destination, const std::byte* source, int64_t lines, const std::byte* ahead);

  /// Copies `count` runs of `run` bytes with strides `destination_stride` and `source_stride`, and prefetches the
  /// memory `ahead` bytes from each source (0: none).
  void (*copy_runs)(std::byte* destination, int64_t destination_stride, const std::byte* source, int64_t source_stride,
                    int64_t run, int64_t count, int64_t ahead);

  /// Copies `count` runs of `lines` lines each with stores that bypass the cache. Destinations are line-aligned and
  /// `destination_stride` apart; the source is contiguous.
  void (*stream_rows)(std::byte* destination, int64_t destination_stride, const std::byte* source, int64_t lines,
                      int64_t count);

  /// Like transpose_tile, for units of 1, 2, 4, 8 and 16 bytes. Prefetches the tile `ahead` bytes from the source (0:
  /// none).
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
