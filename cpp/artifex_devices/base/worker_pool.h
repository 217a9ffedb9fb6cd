// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace artifex_devices {

class Job;

/// Threads of the process, in one lane for each CPU domain of the machine; the workers of a lane are bound to its cores
/// by the lane's `bind`. No thread exists before the first task and none after `shutdown()`; a later task starts them
/// anew. Workers block all signals but those of their own faults. After fork the child has no workers until its first
/// task; a fork waits for no task. A pool is never destroyed: threads that sleep or work do not hinder exit.
class WorkerPool {
 public:
  struct Lane {
    int workers = 1;             // cores that the process may use there
    std::function<void()> bind;  // called first thing on each worker of the lane; may be empty; its errors are dropped
  };

  /// The pool for copies and arithmetic. Its workers never ask for Python's lock and never wait for another thread, so
  /// that any thread may wait for them. Without `configure`, one lane with as many workers as the affinity mask has
  /// CPUs.
  static WorkerPool& process();

  /// The pool for calls into Python, of the same lanes. Its workers may take Python's lock, run finalizers and wait; no
  /// copy needs them.
  static WorkerPool& python();

  /// Sets the lanes of both pools; none means the default again. Only before the first task of this process: later
  /// calls are ignored (false), as are lanes of which none has a worker.
  static bool configure(std::vector<Lane> lanes);

  int lanes() const noexcept;
  /// Workers that a lane has at full work, at least 1; 0 for a lane that there is not.
  int lane_workers(int lane) const noexcept;
  /// Threads that exist now, and those that would at full work.
  int running_workers() const noexcept;
  int max_workers() const noexcept;

  /// Runs body(0) .. body(count - 1), each once, on the calling thread and, from two items on, on workers of `lane`
  /// first (-1: any). Returns when all are done. Between its own items the calling thread asks `check_interrupt()`;
  /// when that throws, no further item starts and the exception leaves after the started ones ended. The first
  /// exception of a body is rethrown, and ends the work in the same way. Callable from a worker (runs inline there, so
  /// workers never wait).
  void parallel_for(int64_t count, int lane, const std::function<void(int64_t)>& body);

  /// What the workers of one lane are to run: body(0) .. body(count - 1).
  struct Work {
    int64_t count = 0;
    int lane = -1;
    std::function<void(int64_t)> body;
  };
  /// The same for several lanes. All of it is queued before a worker is woken, so that each lane's workers find their
  /// own; they help other lanes when they have nothing left. One list's error keeps further items of the others from
  /// starting once it is seen.
  void parallel_for(std::span<const Work> work);

  /// As parallel_for, but returns at once; `done(error)` runs on the worker that ended last (here when count is 0) and
  /// must not throw. `body` is gone by then. Throws Unavailable when no thread can be made, std::bad_alloc; then
  /// nothing of it runs.
  void submit(int64_t count, int lane, std::function<void(int64_t)> body, std::function<void(std::exception_ptr)> done);

  /// The same for several lanes, as parallel_for has it; `done` gets the first error of any.
  void submit(std::vector<Work> work, std::function<void(std::exception_ptr)> done);

  /// Lets queued tasks end, joins all workers. Safe to call twice; not from a worker.
  void shutdown();

  struct State;

 private:
  explicit WorkerPool(bool calls_python);
  void run_jobs(std::span<const std::shared_ptr<Job>> jobs, std::span<const int> lanes);
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  State* state_;  // replaced in a forked child, whose locks may be in any state; never freed
};

}  // namespace artifex_devices
