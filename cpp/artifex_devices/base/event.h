// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include "artifex_devices/base/fork.h"

namespace artifex_devices {

/// "This data is ready", said once, with the error if there was one. Shared by `std::shared_ptr<Event>`; a null pointer
/// means ready. Thread-safe and without a lock of its own, so that a fork at any moment leaves it usable in the child.
/// Continuations run on the thread that sets the event, in the order of `then`, and must not block or throw.
///
/// Lifetime: the thread that sets the event does not touch it any more once is_set() is true, so that a waiter may
/// destroy it at once, also one on its stack. An event that several threads may set must be shared by them.
class Event {
 public:
  Event() noexcept = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }

  /// The first of `set` and `set_error` counts; after any of them is_set() is true, and it is true in continuations. A
  /// null error is `set`.
  void set() noexcept { finish(nullptr); }
  void set_error(std::exception_ptr error) noexcept { finish(std::move(error)); }

  /// Blocks, calling `check_interrupt()` every 20 ms, then rethrows the error if there is one. Never on a worker.
  /// In a forked child an event of the parent that was not set throws Unavailable.
  void wait();

  /// Waits at most `seconds`, as wait() does, and says whether it is set; an error is not rethrown.
  bool wait_for(double seconds);

  /// Whether the process that would have set this event is not this one.
  bool lost_by_fork() const noexcept { return fork_generation_ != fork_generation(); }

  /// The error, once set (null without one, or while not set).
  std::exception_ptr error() const noexcept { return is_set() ? error_ : nullptr; }

  /// Runs `continuation(error)` when set; at once if it is already. In a forked child an event of the parent that was
  /// not set gives Unavailable at once.
  void then(std::function<void(std::exception_ptr)> continuation);

 private:
  struct Continuation {
    std::function<void(std::exception_ptr)> call;
    Continuation* next = nullptr;
  };

  /// The end of the list once its continuations were taken.
  static Continuation* closed() noexcept { return &closed_; }

  void finish(std::exception_ptr error) noexcept;
  void wait_for_setter() const noexcept;

  static Continuation closed_;

  std::atomic<bool> claimed_{false};  // somebody sets it now or has set it
  std::atomic<bool> set_{false};      // error_ does not change any more, and nothing else of the setter's doing
  std::exception_ptr error_;
  std::atomic<Continuation*> continuations_{nullptr};  // newest first, then closed()
  int64_t fork_generation_ = fork_generation();
};

using EventRef = std::shared_ptr<Event>;

inline bool is_ready(const EventRef& event) noexcept { return !event || event->is_set(); }
inline void wait_for(const EventRef& event) {
  if (event) event->wait();
}

}  // namespace artifex_devices
