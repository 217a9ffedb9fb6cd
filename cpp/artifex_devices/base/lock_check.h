// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

// Checks of lock rules, called by mutex.h in a build with ARTIFEX_CHECK_LOCKS. Uses no locks, which a fork could find
// held, and does not synchronize threads, which could hide a race.
namespace artifex_devices::lock_check {

/// All locks with one name.
struct Kind {
  const char* name;
  bool waits;
  bool is_fork;
  mutable std::atomic<int> number{-1};  // assigned at the first use
};

/// Call before a thread waits for `lock`. Violations: a lock that the thread holds; a second lock with the same name; a
/// lock that was held anywhere in this process when a lock was taken that the thread holds now; a lock under which
/// threads wait for others, while this thread has the GIL.
void taking(const Kind& kind, const void* lock);
void taken(const Kind& kind, const void* lock);
/// Violation: a lock that this thread does not hold.
void releasing(const Kind& kind, const void* lock);
/// Call before a wait for other threads that releases `lock`. Violations: this thread holds another lock, unless that
/// lock may be held during waits; this thread has the GIL.
void waiting(const Kind& kind, const void* lock);
/// Call before a wait for other threads, named `what`. Violation: this thread has the GIL.
void waiting_for(const char* what);
/// Violation: this thread holds a lock of the library.
void no_lock_held(const char* what);
/// Call before a thread acquires the GIL, for the purpose `what`. Violations: the thread is a worker; it holds a lock
/// of the library.
void acquiring_gil(const char* what);
/// Marks the calling thread as a worker, which never acquires the GIL.
void mark_worker() noexcept;

/// Returns whether the calling thread has the GIL. Installed by the bindings, because the core does not know Python.
using GilHook = bool (*)();
void set_gil_hook(GilHook hook) noexcept;

/// Called at a violation. Null: the message is written to stderr and the process aborts. Tests install a hook that
/// throws; if the hook returns, the thread continues.
using ViolationHook = void (*)(const std::string& message);
void set_violation_hook(ViolationHook hook) noexcept;

}  // namespace artifex_devices::lock_check
