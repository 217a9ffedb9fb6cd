// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace artifex_devices {

/// "This data is ready", said once, with the error if there was one. Shared by `std::shared_ptr<Event>`; a null pointer
/// means ready. Thread-safe. Continuations run on the thread that sets the event, outside its lock, and must not block.
class Event {
 public:
  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }

  void set() noexcept { finish(nullptr); }
  void set_error(std::exception_ptr error) noexcept { finish(std::move(error)); }

  /// Blocks, calling `check_interrupt()` every 20 ms, then rethrows the error if there is one. Never on a worker.
  /// In a forked child an event of the parent that was not set throws Unavailable.
  void wait();

  /// The error, once set (null without one, or while not set).
  std::exception_ptr error() const;

  /// Runs `continuation(error)` when set; at once if it is already.
  void then(std::function<void(std::exception_ptr)> continuation);

 private:
  void finish(std::exception_ptr error) noexcept;

  std::atomic<bool> set_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  std::vector<std::function<void(std::exception_ptr)>> continuations_;
  int64_t fork_generation_ = -1;  // set by wait() of the process that made it
};

using EventRef = std::shared_ptr<Event>;

inline bool is_ready(const EventRef& event) noexcept { return !event || event->is_set(); }
inline void wait_for(const EventRef& event) {
  if (event && !event->is_set()) event->wait();
  if (event) {
    if (auto error = event->error()) std::rethrow_exception(error);
  }
}

}  // namespace artifex_devices
