// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <new>
#include <utility>

#include "artifex_devices/base/affinity.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

thread_local bool t_is_worker = false;

/// One parallel_for or submit. Whoever works on it claims items until none is left; whoever ends the last one ends it.
class Job {
 public:
  Job(int64_t count, const std::function<void(int64_t)>& body) : count_(count), body_(&body) {}
  Job(int64_t count, std::function<void(int64_t)> body, std::function<void(std::exception_ptr)> done)
      : count_(count), owned_(std::move(body)), body_(&owned_), done_(std::move(done)) {}

  /// Runs items until none is left. `before_each` may throw, which ends the job.
  template <class F>
  void work(F before_each) noexcept {
    bool first = true;
    for (;;) {
      try {
        if (!std::exchange(first, false)) before_each();
        if (lost_by_fork()) return;
      } catch (...) {
        fail_with(std::current_exception());
        return;
      }
      const int64_t item = next_.fetch_add(1, std::memory_order_relaxed);
      if (item >= count_) return;
      no_lock_held("an item of a job");
      try {
        (*body_)(item);
      } catch (...) {
        fail_with(std::current_exception());
      }
      ended(1);
    }
  }

  /// Keeps further items from starting. The first error is the one of the job.
  void fail_with(std::exception_ptr error) noexcept {
    if (lost_by_fork()) {  // nobody else has this copy of the job; a worker of the parent may have held the lock
      error_ = std::move(error);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    const int64_t claimed = next_.exchange(count_, std::memory_order_relaxed);
    if (claimed < count_) ended(count_ - claimed);
  }

  /// Waits until all items ended, asking check_interrupt() meanwhile, and rethrows the error.
  void wait() {
    bool interrupted = false;
    while (ended_.load(std::memory_order_acquire) < count_) {
      if (lost_by_fork()) fail_lost();
      if (!interrupted) {
        try {
          check_interrupt();
        } catch (...) {
          interrupted = true;
          fail_with(std::current_exception());
        }
        if (lost_by_fork()) fail_lost();  // before the lock: a worker of the parent may have held it
      }
      std::unique_lock lock(mutex_);
      all_ended_.wait_for(lock, std::chrono::milliseconds(20),
                          [this] { return ended_.load(std::memory_order_acquire) >= count_; });
    }
    std::exception_ptr error;  // taken from the job, which a worker may keep for a while: it is to die on this thread
    {
      std::unique_lock lock(mutex_, std::defer_lock);
      if (!lost_by_fork()) lock.lock();
      error = std::move(error_);
    }
    if (error) std::rethrow_exception(std::move(error));
  }

  int64_t queued = 0;  // tickets in the lanes' queues; guarded by the pool's mutex

 private:
  /// Whether this is the copy that a forked child has of a job of its parent.
  bool lost_by_fork() const noexcept { return generation_ != fork_generation(); }

  [[noreturn]] void fail_lost() {
    if (error_) std::rethrow_exception(std::move(error_));
    fail<Unavailable>(
        "parallel_for: the process was forked amid this call, by a signal handler or by one of its own items; expected "
        "to end the items in the parent, got a child without the other workers; make the call again in the child");
  }

  void ended(int64_t items) noexcept {
    if (ended_.fetch_add(items, std::memory_order_acq_rel) + items < count_) return;
    std::exception_ptr error;
    {
      const std::lock_guard lock(mutex_);
      if (done_) error = std::move(error_);
      all_ended_.notify_all();
    }
    if (!done_) return;
    owned_ = nullptr;  // what the body holds must not outlive the work
    auto done = std::exchange(done_, nullptr);
    no_lock_held("what a job says at its end");
    try {
      done(std::move(error));
    } catch (...) {  // promised not to throw; a worker is no place to die for it
    }
  }

  const int64_t count_;
  std::function<void(int64_t)> owned_;
  const std::function<void(int64_t)>* const body_;
  std::function<void(std::exception_ptr)> done_;
  const int64_t generation_ = fork_generation();
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<int64_t> ended_{0};
  Mutex<"job"> mutex_;
  ConditionVariable all_ended_;
  std::exception_ptr error_;
};

using JobRef = std::shared_ptr<Job>;

int allowed_cpus() noexcept { return std::max(1, AffinityMask().count()); }

}  // namespace

struct WorkerPool::State {
  struct LaneState {
    Lane lane;
    int running = 0;
    int idle = 0;   // asleep, woken ones included until they run
    int woken = 0;  // of these, those that a ticket has woken
    std::deque<JobRef> tickets;
    ConditionVariable changed;
  };
  struct Start {
    State* state;
    size_t lane;
    int number;
    int64_t epoch;  // at the start, and not when the thread first runs: a shutdown may come in between
  };

  State(std::vector<Lane> set, bool into_python) : calls_python(into_python) { set_lanes_locked(std::move(set)); }

  void set_lanes_locked(std::vector<Lane> set) {
    lanes.clear();
    for (Lane& each : set) lanes.emplace_back().lane = std::move(each);
  }

  void set_default_lanes_locked() {
    if (lanes.empty()) lanes.emplace_back().lane.workers = allowed_cpus();
  }
  int max_workers_locked() const {
    if (lanes.empty()) return allowed_cpus();
    int sum = 0;
    for (const LaneState& each : lanes) sum += std::max(0, each.lane.workers);
    return sum;
  }
  int running_locked() const {
    int sum = 0;
    for (const LaneState& each : lanes) sum += each.running;
    return sum;
  }

  bool start_worker_locked(size_t lane) noexcept;
  void serve_locked(size_t lane) noexcept;
  void push_locked(const JobRef& job, int64_t tickets, int lane) noexcept;
  void withdraw_locked(const JobRef& job);
  JobRef take_locked(size_t lane);
  void run_worker(size_t lane, int64_t started_in);

  Mutex<"worker pool"> mutex;
  std::deque<LaneState> lanes;  // deque: their addresses must not change
  bool used = false;
  int64_t epoch = 0;  // one more with each shutdown
  size_t next_lane = 0;
  std::vector<pthread_t> threads;
  Mutex<"shutdown of workers", LockUse::kWaits> shutdown_mutex;  // taken before `mutex`
  const int64_t generation = fork_generation();
  const bool calls_python;
};

namespace {

extern "C" void* worker_main(void* argument) {
  const std::unique_ptr<WorkerPool::State::Start> start(static_cast<WorkerPool::State::Start*>(argument));
  const bool calls_python = start->state->calls_python;
  t_is_worker = true;
#ifdef ARTIFEX_CHECK_LOCKS
  if (!calls_python) lock_check::mark_worker();
#endif
  std::array<char, 16> name;  // as long as the system takes; without memory of the heap, which may be short
  std::snprintf(name.data(), name.size(), calls_python ? "artifex-py-%d" : "artifex-%d", start->number);
  pthread_setname_np(pthread_self(), name.data());
  start->state->run_worker(start->lane, start->epoch);
  return nullptr;
}

/// Signals are for the threads of the program, except those that a thread causes by its own fault (a blocked SIGSEGV
/// would end the process without its handler).
class BlockSignals {
 public:
  BlockSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

/// False where there is no memory for one, or the system gives no thread.
bool WorkerPool::State::start_worker_locked(size_t lane) noexcept {
  std::unique_ptr<Start> start;
  try {
    threads.reserve(threads.size() + 1);
    start = std::make_unique<Start>(Start{this, lane, running_locked(), epoch});
  } catch (const std::bad_alloc&) {
    return false;
  }
  const BlockSignals blocked;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, worker_main, start.get()) != 0) return false;
  start.release();
  threads.push_back(thread);
  ++lanes[lane].running;
  return true;
}

/// Wakes or starts a worker for a ticket in `lane`: one of that lane if there is one, else of any.
void WorkerPool::State::serve_locked(size_t lane) noexcept {
  for (size_t i = 0; i < lanes.size(); ++i) {
    LaneState& each = lanes[(lane + i) % lanes.size()];
    if (each.idle > each.woken) {
      ++each.woken;
      each.changed.notify_one();
      return;
    }
    if (each.running < each.lane.workers && start_worker_locked((lane + i) % lanes.size())) return;
  }
}

/// As many of the tickets as there is memory for: each only asks one more worker to take part.
void WorkerPool::State::push_locked(const JobRef& job, int64_t tickets, int lane) noexcept {
  const auto count = static_cast<int64_t>(lanes.size());
  for (int64_t i = 0; i < tickets; ++i) {
    const size_t at = lane >= 0 && lane < count ? static_cast<size_t>(lane) : next_lane++ % lanes.size();
    try {
      lanes[at].tickets.push_back(job);
    } catch (const std::bad_alloc&) {
      return;
    }
    ++job->queued;
    serve_locked(at);
  }
}

void WorkerPool::State::withdraw_locked(const JobRef& job) {
  for (LaneState& each : lanes) {
    if (job->queued == 0) return;
    job->queued -= static_cast<int64_t>(std::erase(each.tickets, job));
  }
}

JobRef WorkerPool::State::take_locked(size_t lane) {
  for (size_t i = 0; i < lanes.size(); ++i) {
    LaneState& each = lanes[(lane + i) % lanes.size()];
    if (each.tickets.empty()) continue;
    JobRef job = std::move(each.tickets.front());
    each.tickets.pop_front();
    --job->queued;
    return job;
  }
  return nullptr;
}

void WorkerPool::State::run_worker(size_t lane, int64_t started_in) {
  LaneState& home = lanes[lane];
  try {
    if (home.lane.bind) home.lane.bind();
  } catch (...) {  // an unbound worker is slower, not wrong
  }
  std::unique_lock lock(mutex);
  for (;;) {
    if (JobRef job = take_locked(lane)) {
      lock.unlock();
      job->work([] {});
      job.reset();
      if (generation != fork_generation()) return;  // forked by an item: this state is the parent's
      lock.lock();
      continue;
    }
    if (epoch != started_in) break;
    ++home.idle;
    home.changed.wait(lock, [&] { return home.woken > 0 || epoch != started_in; });
    --home.idle;
    if (home.woken > 0) --home.woken;
  }
  --home.running;
}

WorkerPool::WorkerPool(bool calls_python) : state_(new State({}, calls_python)) {}

void WorkerPool::before_fork() { state_->mutex.lock(); }
void WorkerPool::after_fork_in_parent() { state_->mutex.unlock(); }
void WorkerPool::after_fork_in_child() {
  // The lock has kept the lanes whole; all else of the parent's state is left as it is.
  State* const before = state_;
  std::vector<Lane> lanes;
  for (const State::LaneState& each : before->lanes) lanes.push_back(each.lane);
  before->mutex.unlock();
  state_ = new State(std::move(lanes), before->calls_python);
}

WorkerPool& WorkerPool::process() {
  static WorkerPool& pool = []() -> WorkerPool& {
    auto* made = new WorkerPool(false);
    register_fork_handlers({.prepare = [] { process().before_fork(); },
                            .parent = [] { process().after_fork_in_parent(); },
                            .child = [] { process().after_fork_in_child(); }});
    return *made;
  }();
  return pool;
}

WorkerPool& WorkerPool::python() {
  static WorkerPool& pool = []() -> WorkerPool& {
    auto* made = new WorkerPool(true);
    register_fork_handlers({.prepare = [] { python().before_fork(); },
                            .parent = [] { python().after_fork_in_parent(); },
                            .child = [] { python().after_fork_in_child(); }});
    return *made;
  }();
  return pool;
}

namespace {

// So that no fork meets a half-made one.
[[maybe_unused]] const WorkerPool& g_process_pool_made_at_load = WorkerPool::process();
[[maybe_unused]] const WorkerPool& g_python_pool_made_at_load = WorkerPool::python();

}  // namespace

bool WorkerPool::configure(std::vector<Lane> lanes) {
  const bool none = std::ranges::none_of(lanes, [](const Lane& lane) { return lane.workers > 0; });
  State& own = *process().state_;
  if (none && !lanes.empty()) return false;
  {
    const std::lock_guard lock(own.mutex);
    if (own.used) return false;
    own.set_lanes_locked(lanes);
  }
  State& calls = *python().state_;
  const std::lock_guard lock(calls.mutex);
  if (!calls.used) calls.set_lanes_locked(std::move(lanes));
  return true;
}

int WorkerPool::lanes() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return std::max(1, static_cast<int>(state_->lanes.size()));
}

int WorkerPool::lane_workers(int lane) const noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->lanes.empty()) return lane == 0 ? allowed_cpus() : 0;
  if (lane < 0 || lane >= static_cast<int>(state_->lanes.size())) return 0;
  return std::max(1, state_->lanes[static_cast<size_t>(lane)].lane.workers);
}

int WorkerPool::running_workers() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->running_locked();
}

int WorkerPool::max_workers() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->max_workers_locked();
}

void WorkerPool::parallel_for(int64_t count, int lane, const std::function<void(int64_t)>& body) {
  no_lock_held("parallel_for");
  if (count == 1) return body(0);
  if (t_is_worker) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  if (count <= 0) return;
  waiting_for("the workers (parallel_for)");
  State* const state = state_;
  const auto job = std::make_shared<Job>(count, body);
  {
    const std::lock_guard lock(state->mutex);
    state->set_default_lanes_locked();
    state->used = true;
    // The calling thread is one of the workers for this job.
    state->push_locked(job, std::min<int64_t>(count, state->max_workers_locked()) - 1, lane);
  }
  job->work(check_interrupt);
  if (state == state_) {
    const std::lock_guard lock(state->mutex);
    state->withdraw_locked(job);
  }
  job->wait();
}

void WorkerPool::submit(int64_t count, int lane, std::function<void(int64_t)> body,
                        std::function<void(std::exception_ptr)> done) {
  no_lock_held("submit");
  if (count <= 0) return done(nullptr);
  const auto job = std::make_shared<Job>(count, std::move(body), std::move(done));
  const std::lock_guard lock(state_->mutex);
  state_->set_default_lanes_locked();
  state_->used = true;
  state_->push_locked(job, std::min<int64_t>(count, state_->max_workers_locked()), lane);
  if (job->queued == 0) throw std::bad_alloc();
  if (state_->running_locked() == 0) {
    state_->withdraw_locked(job);
    fail<Unavailable>(
        "submit: the system gives this process no further thread for copying; expected at least 1, got "
        "0; raise the limit on threads or memory (ulimit -u, ulimit -v, the cgroup's pids.max)");
  }
}

void WorkerPool::shutdown() {
  State& state = *state_;
  const std::lock_guard only_one(state.shutdown_mutex);
  std::vector<pthread_t> threads;
  {
    const std::lock_guard lock(state.mutex);
    ++state.epoch;
    threads.swap(state.threads);
    for (State::LaneState& each : state.lanes) each.changed.notify_all();
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

}  // namespace artifex_devices
