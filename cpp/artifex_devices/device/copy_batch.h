// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/block.h"

namespace artifex_devices {

/// The copies of one transfer, cut into pieces that the workers of each destination's lane take in turn. Many small
/// copies form one piece. Big copies that read neighbouring columns of one source run together, to read the source once
/// from front to back. Destinations do not overlap.
class CopyBatch {
 public:
  using Done = std::function<void(std::exception_ptr)>;

  void reserve(int64_t copies) { copies_.reserve(static_cast<size_t>(copies)); }
  /// `lane` of the device that the memory is written for.
  void add(const StridedCopy& copy, LaneId lane);
  /// Adds too many copies to list: `run(first, last)` executes the copies of the units [first, last) and writes only
  /// their memory. It is called on several threads. An exception ends the batch with that error. Not for the batches of
  /// a copy engine.
  struct Bulk {
    LaneId lane = kAnyLane;
    int64_t units = 0;
    int64_t bytes = 0;
    std::function<void(int64_t, int64_t)> run;
  };
  void add(Bulk bulk);
  /// Keeps an object until the batch is done.
  void hold(BlockRef block) { held_.push_back(std::move(block)); }

  int64_t bytes() const noexcept { return bytes_; }
  static constexpr int64_t kLongRun = int64_t{64} << 10;
  /// Whether each copy consists of runs of kLongRun bytes or more.
  bool has_long_runs() const noexcept { return shortest_run_ >= kLongRun && bulks_.empty(); }

  // For an Executor, which runs it by one of these and then ends it:
  /// Copies everything on the calling thread.
  void copy() const;
  /// Work for the workers of each lane; this object outlives it.
  std::vector<WorkerPool::Work> cut();
  std::vector<StridedCopy> listed() const;

  /// Ends a batch that was submitted, complete or not: frees held memory of arenas, calls `done(error)`, which must not
  /// throw, then drops held memory of callers, whose release is foreign code that may be slow.
  void end(const Done& done, std::exception_ptr error);

 private:
  struct Copy {
    StridedCopy copy;
    LaneId lane;
  };
  struct Piece {
    int64_t first;  // copies [first, last): whole ones, or piece `index` of `count` of each, run together
    int64_t last;
    int64_t index;
    int64_t count;
    bool together;
    const Bulk* bulk = nullptr;  // not null: units [first, last) of it
  };
  struct LaneWork {
    LaneId lane;
    std::vector<Piece> pieces;
  };
  void order();
  void cut_copies(int64_t piece_bytes);
  void cut_bulks(int64_t piece_bytes);
  LaneWork& work_of(LaneId lane);
  void run_piece(const Piece& piece) const;

  std::vector<Copy> copies_;
  std::vector<Bulk> bulks_;
  std::vector<BlockRef> held_;
  std::vector<LaneWork> work_;
  int64_t bytes_ = 0;
  int64_t shortest_run_ = INT64_MAX;
};

/// The bytes of a transfer that the workers of one lane write, if the lanes of its copies share them evenly.
int64_t bytes_of_one_lane(int64_t bytes, std::vector<LaneId> lanes);

}  // namespace artifex_devices
