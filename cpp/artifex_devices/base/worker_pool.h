// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace artifex_devices {

/// The process's threads for copies. One lane a CPU domain of the machine; the workers of a lane are bound to its cores
/// by the lane's `bind`. No thread exists before the first task and none after `shutdown()`; a later task starts them
/// anew. Workers block all signals. After fork the child has no workers until its first task; a fork waits for no task.
class WorkerPool {
 public:
  struct Lane {
    int workers = 1;                // cores that the process may use there
    std::function<void()> bind;     // called first thing on each worker of the lane; may be empty
  };

  /// The pool of the process. Without `configure`, one lane with as many workers as the affinity mask has CPUs.
  static WorkerPool& process();

  /// Sets the lanes; only before the first task, later calls are ignored (false).
  bool configure(std::vector<Lane> lanes);

  int lanes() const noexcept;
  /// Threads that exist now, and those that would at full work.
  int running_workers() const noexcept;
  int max_workers() const noexcept;

  /// Runs body(0) .. body(count - 1), each once, on the calling thread and, from two items on, on workers of `lane`
  /// first (-1: any). Returns when all are done. Between its own items the calling thread asks `check_interrupt()`;
  /// when that throws, no further item starts and the exception leaves after the started ones ended. The first
  /// exception of a body is rethrown. Callable from a worker (runs inline there, so workers never wait).
  void parallel_for(int64_t count, int lane, const std::function<void(int64_t)>& body);

  /// As parallel_for, but returns at once; `done(error)` runs on the worker that ended last.
  /// Throws Unavailable when no thread can be made.
  void submit(int64_t count, int lane, std::function<void(int64_t)> body, std::function<void(std::exception_ptr)> done);

  /// Lets queued tasks end, joins all workers. Safe to call twice; not from a worker.
  void shutdown();

  struct State;

 private:
  WorkerPool();
  std::shared_ptr<State> state_;
};

}  // namespace artifex_devices
