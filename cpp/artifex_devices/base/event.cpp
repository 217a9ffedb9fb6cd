// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/event.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include "artifex_devices/base/caller_line.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/recorder.h"

namespace artifex_devices {
namespace {

// All waiting threads of the process sleep here. One object instead of one for each event: events stay small, and a
// forked child begins with a fresh one (to destroy a condition variable that a thread of the parent waited on would
// hang).
struct Parking {
  Mutex<"waiters of events"> mutex;
  ConditionVariable changed;
};

FreshInChild<Parking> g_parking;

std::exception_ptr lost_error() {
  return std::make_exception_ptr(
      Unavailable("wait: the data was still being written when this process was forked, and the threads that wrote it "
                  "stayed in the parent; expected a finished array, got an array that can never finish; call "
                  "block_until_ready() before the fork, or make the array again in the child"));
}

// Records a wait in the open traces, until the object is destroyed.
class TracedWait {
 public:
  TracedWait() noexcept : begin_ns_(recorded_begin_ns(Recorded::kSpans)) {}
  ~TracedWait() {
    if (begin_ns_ == 0) return;
    const int64_t end_ns = clock_ns();
    try {
      TraceEvent event{.kind = TraceKind::kWait, .name = "wait for data", .begin_ns = begin_ns_, .end_ns = end_ns};
      if (auto line = caller_line()) {
        event.file = std::move(line->file);
        event.line = line->line;
      }
      record(std::move(event));
    } catch (const std::bad_alloc&) {  // the wait is missing from the traces
    }
  }
  TracedWait(const TracedWait&) = delete;
  TracedWait& operator=(const TracedWait&) = delete;

 private:
  int64_t begin_ns_;
};

}  // namespace

Event::Continuation Event::closed_;

Event::~Event() {
  if (is_set()) return;
  // It was never set: its continuations are destroyed without a call.
  Continuation* each = continuations_.load(std::memory_order_acquire);
  while (each != nullptr) delete std::exchange(each, each->next);
}

void Event::finish(std::exception_ptr error) noexcept {
  if (claimed_.exchange(true, std::memory_order_acq_rel)) return wait_for_setter();
  error_ = error;
  Continuation* newest = continuations_.exchange(closed(), std::memory_order_acq_rel);
  set_.store(true, std::memory_order_release);  // from here on a waiting thread may have destroyed this event

  Parking& place = g_parking.get();
  // A waiting thread is now either before its read of set_ or asleep, never in between.
  {
    const std::lock_guard lock(place.mutex);
  }
  place.changed.notify_all();

  Continuation* oldest = nullptr;
  while (newest != nullptr) {
    Continuation* const each = std::exchange(newest, newest->next);
    each->next = std::exchange(oldest, each);
  }
  if (oldest != nullptr) no_lock_held("a continuation of an event");
  while (oldest != nullptr) {
    const std::unique_ptr<Continuation> each(std::exchange(oldest, oldest->next));
    each->call(error);
  }
}

/// Waits until the first setter has done its last store. In a forked child that thread may not exist.
void Event::wait_for_setter() const noexcept {
  while (!is_set() && !lost_by_fork()) std::this_thread::yield();
}

void Event::wait() {
  wait_for(std::numeric_limits<double>::infinity());
  if (error_) std::rethrow_exception(error_);
}

bool Event::wait_for(double seconds) {
  if (is_set()) return true;
  artifex_devices::waiting_for("an event");
  const TracedWait traced;
  while (help()) {
  }
  using Clock = std::chrono::steady_clock;
  constexpr double kSlice = 0.02;
  constexpr std::chrono::duration<double> kPoll{2e-3};
  const Clock::time_point begin = Clock::now();
  if (is_expected_soon_) {
    while (!is_set() && Clock::now() - begin < std::min(kPoll, std::chrono::duration<double>(seconds))) {
    }
  }
  Parking& place = g_parking.get();
  while (!is_set()) {
    if (lost_by_fork()) std::rethrow_exception(lost_error());
    check_interrupt();
    const double left = seconds - std::chrono::duration<double>(Clock::now() - begin).count();
    if (!(left > 0)) return false;
    std::unique_lock lock(place.mutex);
    if (is_set()) break;
    place.changed.wait_for(lock, std::chrono::duration<double>(std::min(left, kSlice)));
  }
  return true;
}

void Event::then(std::function<void(std::exception_ptr)> continuation) {
  auto added = std::make_unique<Continuation>(std::move(continuation));
  Continuation* head = continuations_.load(std::memory_order_acquire);
  while (head != closed() && !lost_by_fork()) {
    added->next = head;
    if (continuations_.compare_exchange_weak(head, added.get(), std::memory_order_acq_rel)) {
      added.release();
      return;
    }
  }
  if (head == closed()) wait_for_setter();
  no_lock_held("a continuation of an event");
  added->call(is_set() ? error_ : lost_error());
}

std::function<bool()> helper_of(const EventRef& event) {
  if (!event->has_helper()) return nullptr;
  return [weak = std::weak_ptr(event)] {
    const EventRef held = weak.lock();
    return held && held->help();
  };
}

}  // namespace artifex_devices
