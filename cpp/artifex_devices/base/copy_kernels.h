// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// Instruction sets that the loops of copies are compiled for. Baseline is SSE2 on x86-64 and NEON on aarch64, where
/// there is no other.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };

std::string_view to_string(Isa isa) noexcept;  // "baseline", "avx2", "avx512"

/// Those that this processor runs, least first; never empty.
std::vector<Isa> supported_isas();

/// The set in use; when the library is loaded it is the greatest that the processor runs.
Isa active_isa() noexcept;

/// Lets all later copies use one set, for tests and for counts of instructions that are to be the same everywhere.
/// Throws InvalidArgument that names those that this processor runs.
void set_active_isa(std::string_view name, std::string_view operation);

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

/// Those in use.
const CopyKernels& copy_kernels() noexcept;

extern const CopyKernels copy_kernels_baseline;
#if defined(__x86_64__)
extern const CopyKernels copy_kernels_avx2;
extern const CopyKernels copy_kernels_avx512;
#endif

}  // namespace artifex_devices
