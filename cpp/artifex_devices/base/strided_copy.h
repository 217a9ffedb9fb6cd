// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// One copy of a box of elements between two strided memories, made ready to run in pieces on several threads.
///
/// Dimensions of size 1 are dropped and neighbours that are contiguous on both sides are merged, so that most copies
/// become one or two loops. Strides are in bytes, may be negative, and are 0 for broadcast sources; the destination
/// must not overlap itself or the source. Bits are moved as they are. Above the share of the last-level cache that
/// one core has, stores bypass the cache.
///
/// Example: a (4, 6) float32 block out of a (4, 8) array, strides {32, 4}, into a dense one, strides {24, 4}, is four
/// runs of 24 bytes.
class StridedCopy {
 public:
  StridedCopy(void* destination, const Dims& destination_strides, const void* source, const Dims& source_strides,
              const Dims& shape, int64_t itemsize);

  int64_t bytes() const noexcept { return bytes_; }

  /// In how many pieces of about `piece_bytes` the copy can be cut (at least 1; 0 when there is nothing to copy).
  /// Pieces never share a destination cache line where the layout allows it.
  int64_t pieces(int64_t piece_bytes) const noexcept;

  /// Copies piece `index` of `count`, where `count` is any number up to `pieces(...)`. Thread-safe for distinct pieces.
  void run(int64_t index, int64_t count) const noexcept;

  /// Copies all of it on the calling thread.
  void run() const noexcept {
    if (bytes_ > 0) run(0, 1);
  }

 private:
  std::byte* destination_;
  const std::byte* source_;
  Dims shape_;  // collapsed, in units of unit_ bytes; the last dimension is the run
  Dims destination_strides_;
  Dims source_strides_;
  int64_t unit_ = 1;  // bytes of one element, or of a contiguous run of them
  int64_t bytes_ = 0;
  bool stream_ = false;
};

}  // namespace artifex_devices
