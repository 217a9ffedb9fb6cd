// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/device/copy_batch.h"
#include "artifex_devices/device/copy_engine.h"
#include "artifex_devices/partition/reshard_plan.h"

namespace artifex_devices {

/// The copies of a plan between memories of this process. A few copies are listed in a CopyBatch, which orders them by
/// the source. Many copies are computed by the workers that run them, one destination buffer at a time; their memory
/// then grows only with the number of buffers.
class PlannedCopies {
 public:
  /// More copies than this are not listed: 10 MB, and once more while they are ordered. Tests set it.
  static inline std::atomic<int64_t> most_listed{int64_t{1} << 15};

  /// The memory of one end, by the plan's number of each buffer: null where it is in another process, or, at the
  /// destination, where nothing is copied to it.
  struct End {
    IdVector<PlaceId, std::byte*> data;
    IdVector<PlaceId, LaneId> lanes;  // of the destination's devices; not needed for the source
    LayoutRef layout;                 // of each buffer
    int64_t tile_stride = 0;  // of the source, where the buffer of tile t begins t times this after that of tile 0
  };

  /// `process`: the number of this process in the plan's places.
  PlannedCopies(std::shared_ptr<const ReshardPlan> plan, End from, End to, ProcessIndex process);

  /// Copies for `batch`, which must hold the memory of both ends; `engine`: that of the client, which takes listed
  /// copies only.
  static void add_to(CopyBatch* batch, std::shared_ptr<const PlannedCopies> copies, const CopyEngine* engine);

 private:
  template <class Sink>
  void for_boxes(PlaceId destination, Sink& sink) const;
  int64_t bytes_into(PlaceId destination) const;

  std::shared_ptr<const ReshardPlan> plan_;
  End from_;
  End to_;
  CutRange cuts_;  // of the source tiles in this process
  bool is_one_process_;
  int64_t lane_bytes_;  // what one lane's workers write
};

}  // namespace artifex_devices
