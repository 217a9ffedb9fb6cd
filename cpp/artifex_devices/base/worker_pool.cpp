// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <memory>
#include <new>
#include <utility>

#include "artifex_devices/base/affinity.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/job.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

using JobRef = std::shared_ptr<Job>;

namespace {

thread_local bool t_is_worker = false;

/// Called once when several jobs have finished, with the error of the first that failed.
class End {
 public:
  End(int64_t jobs, std::function<void(std::exception_ptr)> done) : left_(jobs), done_(std::move(done)) {}

  void one_ended(std::exception_ptr error) {
    if (error && !has_failed_.exchange(true, std::memory_order_relaxed)) error_ = std::move(error);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) std::exchange(done_, nullptr)(std::move(error_));
  }

 private:
  std::atomic<int64_t> left_;
  std::atomic<bool> has_failed_{false};
  std::exception_ptr error_;
  std::function<void(std::exception_ptr)> done_;
};

// Returns whether the thread has ended by the deadline.
bool join_until(pthread_t thread, std::chrono::system_clock::time_point deadline) noexcept {
  const auto since_1970 = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
  const timespec until{.tv_sec = since_1970 / 1'000'000'000, .tv_nsec = since_1970 % 1'000'000'000};
  return pthread_timedjoin_np(thread, nullptr, &until) == 0;
}

int allowed_cpus() noexcept { return std::max(1, AffinityMask().count()); }

}  // namespace

struct WorkerPool::State {
  struct LaneState {
    Lane lane;
    int running = 0;
    int idle = 0;   // asleep, including woken ones until they run
    int woken = 0;  // idle workers that a ticket has woken
    std::deque<JobRef> tickets;
    int64_t unserved = 0;  // tickets that have not woken a worker yet
    ConditionVariable changed;
  };
  struct Start {
    State* state;
    size_t lane;
    int number;
    int64_t epoch;  // read at creation, not when the thread first runs: a shutdown may happen in between
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
  bool wake_locked(size_t lane) noexcept;
  void push_locked(const JobRef& job, int64_t tickets, LaneId lane) noexcept;
  void serve_locked() noexcept;
  void withdraw_locked(const JobRef& job);
  JobRef take_locked(size_t lane);
  void run_worker(size_t lane, int64_t started_in);

  Mutex<"worker pool"> mutex;
  std::deque<LaneState> lanes;  // a deque, because addresses must not change
  bool used = false;
  int64_t epoch = 0;  // incremented by each shutdown
  size_t next_lane = 0;
  std::vector<pthread_t> threads;
  Mutex<"shutdown of workers", LockUse::kWaits> shutdown_mutex;  // taken before `mutex`
  const Generation made_in;
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
  std::array<char, 16> name;  // the system's maximum; not on the heap, which may be exhausted
  std::snprintf(name.data(), name.size(), calls_python ? "artifex-py-%d" : "artifex-%d", start->number);
  pthread_setname_np(pthread_self(), name.data());
  start->state->run_worker(start->lane, start->epoch);
  return nullptr;
}

/// Signals are handled by the threads of the program, except those caused by a thread's own fault (a blocked SIGSEGV
/// would terminate the process without its handler).
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

/// Returns false if there is too little memory, or the system cannot create a thread.
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

/// Wakes or starts a worker of a lane; returns false if all are busy.
bool WorkerPool::State::wake_locked(size_t lane) noexcept {
  LaneState& each = lanes[lane];
  if (each.idle > each.woken) {
    ++each.woken;
    each.changed.notify_one();
    return true;
  }
  return each.running < each.lane.workers && start_worker_locked(lane);
}

/// Queues as many tickets as memory allows; each asks one more worker to take part.
void WorkerPool::State::push_locked(const JobRef& job, int64_t tickets, LaneId lane) noexcept {
  const bool is_known = !lane.is_none() && lane.number() < std::ssize(lanes);
  for (int64_t i = 0; i < tickets; ++i) {
    LaneState& each = lanes[is_known ? static_cast<size_t>(lane.number()) : next_lane++ % lanes.size()];
    try {
      each.tickets.push_back(job);
    } catch (const std::bad_alloc&) {
      return;
    }
    ++job->queued;
    ++each.unserved;
  }
}

/// Wakes workers for tickets queued since the last call: first the workers of each lane, then the workers of lanes
/// without tickets.
void WorkerPool::State::serve_locked() noexcept {
  for (size_t i = 0; i < lanes.size(); ++i) {
    while (lanes[i].unserved > 0 && wake_locked(i)) --lanes[i].unserved;
  }
  size_t helper = 0;
  for (LaneState& each : lanes) {
    for (; each.unserved > 0 && helper < lanes.size(); --each.unserved) {
      while (helper < lanes.size() && (!lanes[helper].tickets.empty() || !wake_locked(helper))) ++helper;
    }
    each.unserved = 0;
  }
}

void WorkerPool::State::withdraw_locked(const JobRef& job) {
  for (LaneState& each : lanes) {
    if (job->queued == 0) return;
    job->queued -= static_cast<int64_t>(std::erase(each.tickets, job));
  }
}

/// Takes a ticket of this lane, or of another lane if no links.
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
  } catch (...) {  // an unbound worker is slower but correct
  }
  std::unique_lock lock(mutex);
  for (;;) {
    if (JobRef job = take_locked(lane)) {
      lock.unlock();
      job->work([] {});
      job.reset();
      if (made_in.is_of_parent()) return;  // forked by an item: this state is the parent's
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

void WorkerPool::before() { state_->mutex.lock(); }
void WorkerPool::in_parent() { state_->mutex.unlock(); }
void WorkerPool::in_child() {
  // The lock has kept the lanes consistent; the rest of the parent's state is abandoned.
  State* const before = state_;
  std::vector<Lane> lanes;
  for (const State::LaneState& each : before->lanes) lanes.push_back(each.lane);
  before->mutex.unlock();
  state_ = new State(std::move(lanes), before->calls_python);
}

WorkerPool& WorkerPool::process() {
  static auto& pool = *new WorkerPool(false);
  return pool;
}

WorkerPool& WorkerPool::python() {
  static auto& pool = *new WorkerPool(true);
  return pool;
}

namespace {

// So that no fork sees a half-initialized one.
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

int WorkerPool::lane_workers(LaneId lane) const noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->lanes.empty()) return lane == LaneId(0) ? allowed_cpus() : 0;
  if (lane.is_none() || lane.number() >= std::ssize(state_->lanes)) return 0;
  return std::max(1, state_->lanes[static_cast<size_t>(lane.number())].lane.workers);
}

int WorkerPool::running_workers() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->running_locked();
}

int WorkerPool::max_workers() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->max_workers_locked();
}

void WorkerPool::parallel_for(int64_t count, LaneId lane, const std::function<void(int64_t)>& body) {
  no_lock_held("parallel_for");
  if (count == 1) return body(0);
  if (t_is_worker) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  if (count <= 0) return;
  const JobRef job = std::make_shared<Job>(count, body);
  run_jobs(std::span(&job, 1), std::span(&lane, 1));
}

void WorkerPool::parallel_for(std::span<const Work> work) {
  no_lock_held("parallel_for");
  std::vector<JobRef> jobs;
  std::vector<LaneId> lanes;
  for (const Work& each : work) {
    if (t_is_worker) {
      for (int64_t i = 0; i < each.count; ++i) each.body(i);
    } else if (each.count > 0) {
      jobs.push_back(std::make_shared<Job>(each.count, each.body));
      lanes.push_back(each.lane);
    }
  }
  if (!jobs.empty()) run_jobs(jobs, lanes);
}

/// Runs jobs on this thread and the workers of their lanes. All are queued before any worker is woken.
void WorkerPool::run_jobs(std::span<const JobRef> jobs, std::span<const LaneId> lanes) {
  waiting_for("the workers (parallel_for)");
  State* const state = state_;
  {
    const std::lock_guard lock(state->mutex);
    state->set_default_lanes_locked();
    state->used = true;
    const int64_t workers = state->max_workers_locked();
    for (size_t i = 0; i < jobs.size(); ++i) {  // the calling thread is one of the workers
      state->push_locked(jobs[i], std::min(jobs[i]->count(), workers) - (i == 0 ? 1 : 0), lanes[i]);
    }
    state->serve_locked();
  }
  std::exception_ptr error;
  for (const JobRef& job : jobs) {
    if (error) {
      job->fail_with(error);  // no further item of it starts
    } else {
      job->work(check_interrupt);
      error = job->failure();
    }
  }
  if (state == state_) {
    const std::lock_guard lock(state->mutex);
    for (const JobRef& job : jobs) state->withdraw_locked(job);
  }
  for (const JobRef& job : jobs) {
    try {
      if (error) job->fail_with(error);
      job->wait();
    } catch (const Interrupted&) {
      error = std::current_exception();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(std::move(error));
}

void WorkerPool::submit(int64_t count, LaneId lane, std::function<void(int64_t)> body,
                        std::function<void(std::exception_ptr)> done) {
  if (count <= 0) {
    no_lock_held("submit");
    return done(nullptr);
  }
  std::vector<Work> work;
  work.push_back({count, lane, std::move(body)});
  submit(std::move(work), std::move(done));
}

void WorkerPool::submit(std::vector<Work> work, std::function<void(std::exception_ptr)> done) {
  no_lock_held("submit");
  std::erase_if(work, [](const Work& each) { return each.count <= 0; });
  if (work.empty()) return done(nullptr);
  const auto end = std::make_shared<End>(static_cast<int64_t>(work.size()), std::move(done));
  std::vector<JobRef> jobs;
  jobs.reserve(work.size());
  for (Work& each : work) {
    jobs.push_back(std::make_shared<Job>(each.count, std::move(each.body),
                                         [end](std::exception_ptr error) { end->one_ended(std::move(error)); }));
  }
  const std::lock_guard lock(state_->mutex);
  state_->set_default_lanes_locked();
  state_->used = true;
  for (size_t i = 0; i < jobs.size(); ++i) {
    state_->push_locked(jobs[i], std::min<int64_t>(jobs[i]->count(), state_->max_workers_locked()), work[i].lane);
  }
  const bool all_queued = std::ranges::all_of(jobs, [](const JobRef& job) { return job->queued > 0; });
  if (all_queued) {
    state_->serve_locked();
    if (state_->running_locked() > 0) return;
  }
  for (const JobRef& job : jobs) state_->withdraw_locked(job);
  if (!all_queued) throw std::bad_alloc();
  throw_error<Unavailable>(
      "submit: the system cannot create another thread for copying; expected at least 1, got 0; raise the limit on "
      "threads or memory (ulimit -u, ulimit -v, the cgroup's pids.max)");
}

void WorkerPool::shutdown(std::optional<std::chrono::milliseconds> limit) {
  State& state = *state_;
  const std::lock_guard only_one(state.shutdown_mutex);
  std::vector<pthread_t> threads;
  {
    const std::lock_guard lock(state.mutex);
    ++state.epoch;
    threads.swap(state.threads);
    for (State::LaneState& each : state.lanes) each.changed.notify_all();
  }
  const auto deadline = std::chrono::system_clock::now() + limit.value_or(std::chrono::milliseconds(0));
  for (const pthread_t thread : threads) {
    if (!limit) {
      pthread_join(thread, nullptr);
    } else if (!join_until(thread, deadline)) {
      pthread_detach(thread);
    }
  }
}

}  // namespace artifex_devices
