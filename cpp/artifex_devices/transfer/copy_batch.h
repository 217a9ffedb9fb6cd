// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "artifex_devices/array/storage.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/copy_engine.h"

namespace artifex_devices {

class DeferredTasks;

/// The copies of one transfer, cut into pieces that the workers of each destination's lane take in turn. Many small
/// copies make one piece together; big ones that read neighbouring columns of one source are run together, so that it
/// is read once from front to back. Destinations do not overlap.
class CopyBatch {
 public:
  /// `engine`: what copies; null: the processor. See Client::copy_engine.
  explicit CopyBatch(const CopyEngine* engine = nullptr) : engine_(engine) {}

  void reserve(int64_t copies) { copies_.reserve(static_cast<size_t>(copies)); }
  /// `lane` of the device that the memory is written for.
  void add(const StridedCopy& copy, int lane);
  /// Adds copies that are too many to list: `run(first, last)` executes those of the units [first, last) and writes
  /// only their memory. It is called on several threads. An exception ends the batch with that error. A batch with an
  /// engine lists all its copies.
  struct Bulk {
    int lane = -1;
    int64_t units = 0;
    int64_t bytes = 0;
    std::function<void(int64_t, int64_t)> run;
  };
  void add(Bulk bulk);
  /// Keeps an object until the batch is done.
  void hold(BufferRef buffer) { held_.push_back(std::move(buffer)); }

  int64_t bytes() const noexcept { return bytes_; }
  bool has_engine() const noexcept { return engine_ != nullptr; }

  /// Runs all copies; below config().parallel_copy_bytes on the calling thread alone. Interruptible: no piece is
  /// running when Interrupted is thrown.
  void run();

  /// Returns at once. `done(error)` runs on a worker, or here if no thread can be created; otherwise nothing is copied
  /// on the calling thread. Then the batch ends as in end(). `done` must not throw. If this throws, no copy was
  /// started.
  static void start(std::shared_ptr<CopyBatch> batch, std::function<void(std::exception_ptr)> done);

  /// The same on the calling thread, which runs all copies and then `done`.
  void run_here(const std::function<void(std::exception_ptr)>& done);

  /// Ends the batch, complete or not: frees held memory of arenas, calls `done(error)`, then drops held memory of
  /// callers, whose release is foreign code that may be slow.
  void end(const std::function<void(std::exception_ptr)>& done, std::exception_ptr error);

 private:
  struct Copy {
    StridedCopy copy;
    int lane;
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
    int lane;
    std::vector<Piece> pieces;
  };
  void order();
  void cut();
  void cut_bulks(int64_t piece_bytes);
  LaneWork& work_of(int lane);
  /// The work for the workers; this object outlives it.
  std::vector<WorkerPool::Work> lane_work() const;
  void run_piece(const Piece& piece) const;

  std::vector<CopyEngine::Task> start_on_engine() const;
  void run_on_engine() const;

  const CopyEngine* engine_;
  std::vector<Copy> copies_;
  std::vector<Bulk> bulks_;
  std::vector<BufferRef> held_;
  std::vector<LaneWork> work_;
  int64_t bytes_ = 0;
};

/// The bytes of a transfer that the workers of one lane write, if the lanes of its copies share them evenly.
int64_t bytes_of_one_lane(int64_t bytes, std::vector<int> lanes);

/// Runs the copies when `before` is set (null: now). Returns the event of their end; an error in `before` becomes its
/// error, and nothing is copied. Adds the copied bytes to `counter`, which must never be destroyed.
/// With `deferred` (not null), the copies are one of these tasks once `before` is set.
EventRef start_after(const EventRef& before, std::shared_ptr<CopyBatch> batch, std::atomic<int64_t>& counter,
                     std::shared_ptr<DeferredTasks> deferred);

}  // namespace artifex_devices
