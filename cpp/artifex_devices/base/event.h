// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "artifex_devices/base/fork.h"

namespace artifex_devices {

/// Signals once that data is ready, or the error that prevented it. Shared by `std::shared_ptr<Event>`; a null pointer
/// means ready. Thread-safe, and lock-free because a forked child must be able to use it. Continuations run on the
/// thread that sets the event, in the order of `then`, and must not block or throw.
///
/// Lifetime: the thread that sets the event does not access it after is_set() is true, so a waiter may destroy it at
/// once, even on its stack. If several threads may set an event, they must share it.
class Event {
 public:
  Event() noexcept = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }

  /// The first call of `set` or `set_error` counts. After it, and in continuations, is_set() is true.
  /// `set_error(nullptr)` is `set()`.
  void set() noexcept { finish(nullptr); }
  void set_error(std::exception_ptr error) noexcept { finish(std::move(error)); }

  /// Blocks until the event is set, calling `check_interrupt()` every 20 ms; then rethrows its error, if any. Must not
  /// be called on a worker. Throws Unavailable in a forked child if the event was not set in the parent.
  void wait();

  /// Waits at most `seconds`, like wait(), and returns whether the event is set; does not rethrow an error.
  bool wait_for(double seconds);

  /// Makes waits poll for two milliseconds before they sleep, because a sleeping thread wakes about 30 us late. For
  /// work that no processor does, such as copies of a GPU. Called before other threads know the event.
  void expect_soon() noexcept { is_expected_soon_ = true; }

  /// A waiting thread calls `helper` repeatedly before it sleeps. Each call does one step of the work that the event
  /// depends on, and returns false if no step is left. Set it before other threads know the event.
  void set_helper(std::function<bool()> helper) noexcept { helper_ = std::move(helper); }
  bool has_helper() const noexcept { return helper_ != nullptr; }
  bool help() const { return !is_set() && !lost_by_fork() && helper_ && helper_(); }

  /// Returns whether the event belongs to the parent of this forked process.
  bool lost_by_fork() const noexcept { return made_in_.is_of_parent(); }

  /// The error of a set event, or null.
  std::exception_ptr error() const noexcept { return is_set() ? error_ : nullptr; }

  /// Runs `continuation(error)` when the event is set, or at once if it is. In a forked child, an event that was not
  /// set in the parent passes Unavailable at once.
  void then(std::function<void(std::exception_ptr)> continuation);

 private:
  struct Continuation {
    std::function<void(std::exception_ptr)> call;
    Continuation* next = nullptr;
  };

  /// Marks the list as closed after its continuations were taken.
  static Continuation* closed() noexcept { return &closed_; }

  void finish(std::exception_ptr error) noexcept;
  void wait_for_setter() const noexcept;

  static Continuation closed_;

  std::atomic<bool> claimed_{false};  // a thread is setting it or has set it
  std::atomic<bool> set_{false};      // error_ is final, and the setter accesses nothing else
  bool is_expected_soon_ = false;
  std::function<bool()> helper_;
  std::exception_ptr error_;
  std::atomic<Continuation*> continuations_{nullptr};  // newest first, then closed()
  Generation made_in_;
};

using EventRef = std::shared_ptr<Event>;

inline bool is_ready(const EventRef& event) noexcept { return !event || event->is_set(); }
inline void wait_for(const EventRef& event) {
  if (event) event->wait();
}
/// Returns whether the event is set. If it is not, calls the helper once first, because a program that only polls must
/// make progress.
inline bool poll(const EventRef& event) {
  if (!is_ready(event)) event->help();
  return is_ready(event);
}
/// A helper for events that depend on `event`, or null if `event` has no helper. It does not keep `event` alive.
std::function<bool()> helper_of(const EventRef& event);

}  // namespace artifex_devices
