// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// One copy of a box of elements between two strided memories, prepared to run in pieces on several threads.
///
/// Dimensions of size 1 are dropped, and adjacent dimensions that are contiguous on both sides are merged. Most copies
/// then become one or two loops. Strides are in bytes, may be negative, and are 0 for broadcast sources; the
/// destination must not overlap itself or the source. Bits are copied unchanged. Above `stream_bytes()`, stores
/// bypass the cache.
///
/// Example: a (4, 6) float32 block out of a (4, 8) array, strides {32, 4}, into a dense one, strides {24, 4}, is four
/// runs of 24 bytes.
class StridedCopy {
 public:
  /// `transfer_bytes`: bytes that the workers of one lane write for the transfer that this copy is part of, if more
  /// than this copy; it decides whether stores bypass the cache.
  StridedCopy(void* destination, const Dims& destination_strides, const void* source, const Dims& source_strides,
              const Dims& shape, int64_t itemsize, int64_t transfer_bytes = 0);

  int64_t bytes() const noexcept { return bytes_; }

  /// Moves both memories by these numbers of bytes. Returns false and changes nothing if the copy relies on an
  /// alignment that the destination would lose. The caller then creates a new copy.
  bool shift(int64_t destination_bytes, int64_t source_bytes) noexcept;

  /// Number of pieces of about `piece_bytes` that the copy can be divided into: at least 1, or 0 for an empty copy.
  /// Pieces share no destination cache line if the layout allows it.
  int64_t pieces(int64_t piece_bytes) const noexcept;

  /// Copies piece `index` of `count`, where `count` is any number up to `pieces(...)`. Thread-safe for distinct pieces.
  void run(int64_t index, int64_t count) const noexcept;

  /// Returns whether this copy is like `before` for memory that follows its runs in the source, such as the next
  /// columns of a matrix. Such copies are faster when run together.
  bool continues(const StridedCopy& before) const noexcept;
  /// Returns whether stores bypass the cache.
  bool bypasses_cache() const noexcept { return stream_; }
  /// The copy as loops around dense runs of `unit` bytes, outermost first, for engines other than the processor.
  /// Strides are in bytes.
  struct LoopNest {
    std::byte* to;
    const std::byte* from;
    Dims shape;
    Dims to_strides;
    Dims from_strides;
    int64_t unit;
  };
  LoopNest loop_nest() const { return {destination_, source_, shape_, destination_strides_, source_strides_, unit_}; }

  /// The first address that it reads.
  const std::byte* source() const noexcept { return source_; }

  /// Copies piece `index` of `count` of several copies, each of which continues the previous copy. It copies one block
  /// of each in turn, to read the source from front to back. `count` is at most the `pieces(...)` of the first.
  static void run_together(std::span<const StridedCopy* const> copies, int64_t index, int64_t count) noexcept;

  /// Bytes that follow each other in source and destination: of each run, or of one element.
  int64_t run_bytes() const noexcept { return unit_; }

  /// Copies all of it on the calling thread.
  void run() const noexcept {
    if (bytes_ > 0) run(0, 1);
  }

 private:
  enum class Kind : uint8_t {
    kRuns,       // units of unit_ bytes, one after another
    kGather,     // rows; the last dimension has small units that are not dense in the source
    kTranspose,  // tiles; the last dimension is dense in the destination, the one before it in the source
  };

  /// Kind of stores for runs and rows.
  enum class Way : uint8_t {
    kPlain,     // ordinary stores
    kCombined,  // assembled in the cache, then stored past it
    kStreamed,  // past the cache
    kLines,     // whole lines past the cache
  };
  class Rows;

  void collapse();
  void choose_kind();
  void choose_way();
  /// Returns the first byte of piece `index` of `count`, in the order of the destination.
  int64_t boundary(int64_t index, int64_t count) const noexcept;
  /// `rows_ahead`: distance in rows at which the source is prefetched (0: none; -1: a suitable number).
  void copy_rows(int64_t begin, int64_t end, int64_t rows_ahead) const noexcept;
  void copy_runs(int64_t begin, int64_t end, int64_t rows_ahead) const noexcept;
  void copy_gathered(int64_t begin, int64_t end, int64_t rows_ahead) const noexcept;
  void copy_tiles(int64_t begin, int64_t end) const noexcept;

  std::byte* destination_;
  const std::byte* source_;
  // Collapsed, in units of unit_ bytes. Destination strides are positive and descending, except the last two of
  // kTranspose and runs that bypass the cache.
  Dims shape_;
  Dims destination_strides_;
  Dims source_strides_;
  int64_t unit_;  // bytes of one element, or of a run that is dense on both sides
  int64_t bytes_ = 0;
  int64_t row_bytes_ = 0;    // kRuns: unit_; kGather: of the last dimension
  int64_t dense_bytes_ = 0;  // of the longest dense stretches of the destination
  Kind kind_ = Kind::kRuns;
  Way way_ = Way::kPlain;
  bool stream_ = false;

  struct Tiles {                // of kTranspose
    int64_t rows = 0;           // of the last dimension
    int64_t columns = 0;        // of the last but one
    int64_t first_columns = 0;  // of the first tile along them
    int64_t across = 0;         // tiles along the columns
    int64_t down = 0;           // tiles along the rows
    int64_t count = 0;          // of all tiles, over the outer dimensions too
  } tiles_;
};

}  // namespace artifex_devices
