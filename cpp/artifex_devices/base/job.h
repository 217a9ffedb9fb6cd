// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

/// One call of parallel_for or submit. Each thread that works on it claims items until none is left; the thread that
/// finishes the last item finishes the job.
class Job {
 public:
  Job(int64_t count, const std::function<void(int64_t)>& body) : count_(count), body_(&body) {}
  Job(int64_t count, std::function<void(int64_t)> body, std::function<void(std::exception_ptr)> done)
      : count_(count), owned_(std::move(body)), body_(&owned_), done_(std::move(done)) {}

  int64_t count() const noexcept { return count_; }

  /// Runs items until none is left. `before_each` may throw, which ends the job: only on the calling thread.
  template <class F>
  void work(F before_each) noexcept {
    bool first = true;
    for (;;) {
      try {
        if (!std::exchange(first, false)) before_each();
      } catch (...) {
        interrupt_with(std::current_exception());
        return;
      }
      if (made_in_.is_of_parent()) return;
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

  /// Prevents further items from starting. The first error is the error of the job.
  void fail_with(std::exception_ptr error) noexcept {
    if (!is_failing_.exchange(true, std::memory_order_relaxed)) {
      error_ = std::move(error);
      has_failed_.store(true, std::memory_order_release);
    }
    stop();
  }

  /// The same on the calling thread, where the error replaces that of an item: a signal has reached the caller and is
  /// reported only once.
  void interrupt_with(std::exception_ptr error) noexcept {
    interrupt_ = std::move(error);
    stop();
  }

  /// The first error, or null. On the calling thread.
  std::exception_ptr failure() const {
    if (interrupt_) return interrupt_;
    return has_failed_.load(std::memory_order_acquire) ? error_ : nullptr;
  }

  /// Waits on the calling thread until all items have finished, calling check_interrupt() regularly, and rethrows the
  /// error.
  void wait() {
    while (ended_.load(std::memory_order_acquire) < count_) {
      if (!interrupt_) {
        try {
          check_interrupt();
        } catch (...) {
          interrupt_with(std::current_exception());
        }
      }
      if (made_in_.is_of_parent()) fail_lost();  // before the lock: a worker of the parent may have held it
      std::unique_lock lock(mutex_);
      all_ended_.wait_for(lock, std::chrono::milliseconds(20),
                          [this] { return ended_.load(std::memory_order_acquire) >= count_; });
    }
    std::exception_ptr error = failure();
    error_ = interrupt_ = nullptr;  // destroyed on this thread, not by a worker that owns the job
    if (error) std::rethrow_exception(std::move(error));
  }

  int64_t queued = 0;  // entries in the lanes' queues; guarded by the pool's mutex

 private:
  void stop() noexcept {
    const int64_t claimed = next_.exchange(count_, std::memory_order_relaxed);
    if (claimed < count_) ended(count_ - claimed);
  }

  [[noreturn]] void fail_lost() {
    if (const std::exception_ptr error = failure()) std::rethrow_exception(error);
    throw_error<Unavailable>(
        "parallel_for: the process was forked during this call, by a signal handler or by one of its own items; "
        "expected to end the items in the parent, got a child without the other workers; make the call again in the "
        "child");
  }

  void ended(int64_t items) noexcept {
    if (ended_.fetch_add(items, std::memory_order_acq_rel) + items < count_) return;
    {
      const std::lock_guard lock(mutex_);
      all_ended_.notify_all();
    }
    if (!done_) return;
    owned_ = nullptr;  // objects captured by the body must not outlive the work
    auto done = std::exchange(done_, nullptr);
    no_lock_held("the callback at the end of a job");
    try {
      done(std::move(error_));
    } catch (...) {  // it must not throw; if it does, the worker continues
    }
  }

  const int64_t count_;
  std::function<void(int64_t)> owned_;
  const std::function<void(int64_t)>* const body_;
  std::function<void(std::exception_ptr)> done_;
  const Generation made_in_;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<int64_t> ended_{0};
  Mutex<"job"> mutex_;
  ConditionVariable all_ended_;
  std::atomic<bool> is_failing_{false};  // a thread writes error_
  std::atomic<bool> has_failed_{false};  // it is written
  std::exception_ptr error_;             // of an item
  std::exception_ptr interrupt_;         // of the calling thread
};

}  // namespace artifex_devices
