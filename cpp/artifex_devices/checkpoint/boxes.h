// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Bytes of the pieces in which checkpoints are written, read and checksummed. Part of the format.
inline constexpr int64_t kCheckpointPieceBytes = int64_t{1} << 20;

/// Divides a dense row-major box into pieces that are boxes too and contiguous in memory, of at most `piece_bytes`.
/// Example: shape (6, 2) of 4 bytes in pieces of 16 bytes: 3 pieces of shape (2, 2).
class PieceGrid {
 public:
  PieceGrid(Dims shape, int64_t itemsize, int64_t piece_bytes = kCheckpointPieceBytes);
  /// 0 for an empty box.
  int64_t count() const noexcept { return count_; }
  /// Piece `index`, in the order of memory, in indices of the box.
  IndexDomain piece(int64_t index) const;

 private:
  Dims shape_;
  int64_t dimension_ = 0;  // dimensions before it are divided into single indices, it into chunks
  int64_t chunk_ = 1;
  int64_t chunks_ = 1;
  int64_t count_ = 1;
};

/// Number of elements before `index` in a row-major array of `shape`.
int64_t row_major_offset(const Dims& shape, const Dims& index) noexcept;

/// Returns the boxes with adjacent ones joined where the result is a box. Duplicates are removed; others must not
/// overlap. Example: {[0, 2) x [0, 4), [2, 4) x [0, 4)} is {[0, 4) x [0, 4)}.
std::vector<IndexDomain> join_boxes(std::vector<IndexDomain> boxes);

/// Part `index` of `count` of a box, divided along its first dimension that is long enough, else along its longest.
/// Returns none if the part has no elements.
std::optional<IndexDomain> part_of_box(IndexDomain box, int64_t index, int64_t count);

/// The boxes of an array that `process` writes: no element belongs to two processes, and processes that hold the same
/// tile share it evenly. An array of one process is one box, even if it is empty.
std::vector<IndexDomain> owned_boxes(const Sharding& sharding, const Dims& shape, ProcessIndex process);

}  // namespace artifex_devices
