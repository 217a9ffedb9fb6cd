// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/id.h"

namespace artifex_devices {

class Job;

/// Work may begin on a worker of any lane.
inline constexpr LaneId kAnyLane;

/// Worker threads in one lane for each CPU domain of the machine; the workers of a lane are bound to its cores by the
/// lane's `bind`. No thread exists before the first task or after `shutdown()`; a later task starts them again. Workers
/// block all signals except synchronous ones (their own faults). A forked child has no workers until its first task; a
/// fork does not wait for tasks. A pool is never destroyed: its threads do not delay exit.
class WorkerPool final : AtFork {
 public:
  struct Lane {
    int workers = 1;             // number of cores that the process may use in the domain
    std::function<void()> bind;  // called first on each worker of the lane; may be empty; errors are ignored
  };

  /// The pool for copies and arithmetic. Its workers never acquire the GIL and never wait for another thread, so any
  /// thread may wait for them. Without `configure` it has one lane with one worker for each CPU of the affinity mask.
  static WorkerPool& process();

  /// The pool for calls into Python, with the same lanes. Its workers may acquire the GIL, run finalizers and wait; no
  /// copy depends on them.
  static WorkerPool& python();

  /// Sets the lanes of both pools; an empty list restores the default. Returns false and does nothing after the first
  /// task of this process, and if no lane has a worker.
  static bool configure(std::vector<Lane> lanes);

  int lanes() const noexcept;
  /// Maximum number of workers of a lane, at least 1; 0 for unknown lanes.
  int lane_workers(LaneId lane) const noexcept;
  /// Number of threads that exist now, and the maximum.
  int running_workers() const noexcept;
  int max_workers() const noexcept;

  /// Runs body(0) .. body(count - 1), each once, on the calling thread and, for two or more items, on workers,
  /// preferably workers of `lane`. Returns when all have finished. Between its own items the calling thread
  /// calls `check_interrupt()`; if that throws, no further item starts, and the exception is rethrown after the running
  /// items have finished. The first exception of a body stops the work in the same way. On a worker it runs inline, so
  /// workers never wait.
  void parallel_for(int64_t count, LaneId lane, const std::function<void(int64_t)>& body);

  /// Work for one lane: body(0) .. body(count - 1).
  struct Work {
    int64_t count = 0;
    LaneId lane = kAnyLane;
    std::function<void(int64_t)> body;
  };
  /// The same for several lanes. All work is queued before a worker is woken, because each lane's workers should begin
  /// with their own list; then they help other lanes. An error in one list stops all lists.
  void parallel_for(std::span<const Work> work);

  /// Like parallel_for, but returns at once. `done(error)` runs on the worker that finishes last (on this thread if
  /// count is 0) and must not throw; `body` is destroyed before. Throws Unavailable if no thread can be created, or
  /// std::bad_alloc; then nothing runs.
  void submit(int64_t count, LaneId lane, std::function<void(int64_t)> body,
              std::function<void(std::exception_ptr)> done);

  /// The same for several lanes, like parallel_for; `done` receives the first error.
  void submit(std::vector<Work> work, std::function<void(std::exception_ptr)> done);

  /// Finishes queued tasks and joins all workers. May be called twice, but not from a worker. With a limit, workers
  /// that are busy when it has passed are left to finish alone.
  void shutdown(std::optional<std::chrono::milliseconds> limit = std::nullopt);

  struct State;

 private:
  explicit WorkerPool(bool calls_python);
  void run_jobs(std::span<const std::shared_ptr<Job>> jobs, std::span<const LaneId> lanes);
  void before() override;
  void in_parent() override;
  void in_child() override;
  State* state_;  // replaced in a forked child, where its locks may be in any state; never freed
};

}  // namespace artifex_devices
