// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

// What mutex.h tells about each lock in a build with ARTIFEX_CHECK_LOCKS, and what is made sure of. Takes no lock of
// its own, so that a fork finds nothing held, and orders nothing between threads, so that it hides no race.
namespace artifex_devices::lock_check {

/// All locks of one name.
struct Kind {
  const char* name;
  bool waits;
  bool is_fork;
  mutable std::atomic<int> number{-1};  // from the first use on
};

/// Before a thread waits for `lock`. Against the rules: a lock that it holds; a second one of the same name; a lock
/// that, somewhere in this process, was held when one of those was taken that the thread holds now; one under which
/// threads wait for others, while this thread has Python's.
void taking(const Kind& kind, const void* lock);
void taken(const Kind& kind, const void* lock);
/// Against the rules: a lock that this thread does not hold.
void letting_go(const Kind& kind, const void* lock);
/// Before a wait for other threads that releases `lock`. Against the rules: another lock held, except those that may be
/// held over waits; Python's lock held.
void waiting(const Kind& kind, const void* lock);
/// Before a wait for other threads, named by `what`. Against the rules: Python's lock held.
void waiting_for(const char* what);
/// Against the rules: any lock of the library held.
void no_lock_held(const char* what);
/// Before a thread asks for Python's lock, for the purpose `what`. Against the rules: a worker; a lock of the library
/// held.
void asking_for_python(const char* what);
/// Marks the calling thread as a worker, which never asks for Python's lock.
void mark_worker() noexcept;

/// Whether the calling thread has Python's lock. The bindings install it, as the core does not know Python.
using PythonLockHook = bool (*)();
void set_python_lock_hook(PythonLockHook hook) noexcept;

/// What happens at a violation. Null: the message goes to stderr and the process aborts. Tests throw; one that returns
/// lets the thread go on.
using ViolationHook = void (*)(const std::string& message);
void set_violation_hook(ViolationHook hook) noexcept;

}  // namespace artifex_devices::lock_check
