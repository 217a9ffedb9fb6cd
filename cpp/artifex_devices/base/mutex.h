// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#ifdef ARTIFEX_CHECK_LOCKS
#include "artifex_devices/base/lock_check.h"
#endif

// The locks of the library. A build with ARTIFEX_CHECK_LOCKS checks these rules (docs/decisions/0019):
// - locks are taken in one order everywhere, identified by their names;
// - no foreign code runs under a lock, especially not Python: the thread that has the GIL may be waiting for our lock;
// - a thread that has the GIL neither waits for other threads nor takes a lock under which threads wait: the threads
//   waited for may need Python;
// - a worker never acquires the GIL. In other builds these are the standard types.
namespace artifex_devices {

enum class LockUse : uint8_t {
  kPlain,  // no thread waits for another thread under it
  kWaits,  // threads wait for others under it
  kFork,   // used by fork.cpp: under it a thread takes all locks, including several with one name
};

/// The name of a lock. The checks treat all locks with one name as one lock.
template <size_t N>
struct LockName {
  char text[N];
  constexpr LockName(const char (&name)[N]) {  // NOLINT(google-explicit-constructor)
    for (size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

/// Checks before a call of foreign code (a callback, a release, Python) that this thread holds no lock of the library.
/// `what` is for the message. Does nothing without ARTIFEX_CHECK_LOCKS.
inline void no_lock_held(const char* what) {
#ifdef ARTIFEX_CHECK_LOCKS
  lock_check::no_lock_held(what);
#else
  static_cast<void>(what);
#endif
}

/// Checks before a wait for other threads, named `what`, that this thread does not have the GIL. Does nothing without
/// ARTIFEX_CHECK_LOCKS.
inline void waiting_for(const char* what) {
#ifdef ARTIFEX_CHECK_LOCKS
  lock_check::waiting_for(what);
#else
  static_cast<void>(what);
#endif
}

/// Checks before this thread acquires the GIL that it is not a worker and holds no lock of the library. `what` is for
/// the message. Does nothing without ARTIFEX_CHECK_LOCKS.
inline void acquiring_gil(const char* what) {
#ifdef ARTIFEX_CHECK_LOCKS
  lock_check::acquiring_gil(what);
#else
  static_cast<void>(what);
#endif
}

#ifndef ARTIFEX_CHECK_LOCKS

template <class Lockable, LockName kName, LockUse kUse = LockUse::kPlain>
using NamedLock = Lockable;
template <LockName kName, LockUse kUse = LockUse::kPlain>
using Mutex = std::mutex;
using ConditionVariable = std::condition_variable;

#else

/// `Lockable` with a name and checks.
template <class Lockable, LockName kName, LockUse kUse = LockUse::kPlain>
class NamedLock {
 public:
  constexpr NamedLock() noexcept = default;
  NamedLock(const NamedLock&) = delete;
  NamedLock& operator=(const NamedLock&) = delete;

  void lock() {
    lock_check::taking(kind_, this);
    lock_.lock();
    lock_check::taken(kind_, this);
  }
  void unlock() {
    lock_check::releasing(kind_, this);
    lock_.unlock();
  }

 private:
  friend class ConditionVariable;

  Lockable lock_;
  inline static constinit lock_check::Kind kind_{kName.text, kUse == LockUse::kWaits, kUse == LockUse::kFork};
};
template <LockName kName, LockUse kUse = LockUse::kPlain>
using Mutex = NamedLock<std::mutex, kName, kUse>;

/// std::condition_variable for such mutexes: a wait releases the mutex and takes it again.
class ConditionVariable {
 public:
  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

  template <class M>
  void wait(std::unique_lock<M>& lock) {
    waiting(lock, [&](std::unique_lock<std::mutex>& inner) { changed_.wait(inner); });
  }
  template <class M, class Condition>
  void wait(std::unique_lock<M>& lock, Condition is_met) {
    while (!is_met()) wait(lock);
  }
  template <class M, class Rep, class Period>
  void wait_for(std::unique_lock<M>& lock, std::chrono::duration<Rep, Period> time) {
    waiting(lock, [&](std::unique_lock<std::mutex>& inner) { changed_.wait_for(inner, time); });
  }
  template <class M, class Rep, class Period, class Condition>
  bool wait_for(std::unique_lock<M>& lock, std::chrono::duration<Rep, Period> time, Condition is_met) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!is_met()) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return false;
      wait_for(lock, left);
    }
    return true;
  }

 private:
  template <class M, class Wait>
  static void waiting(std::unique_lock<M>& lock, Wait wait) {
    M& mutex = *lock.mutex();
    lock_check::waiting(M::kind_, &mutex);
    lock_check::releasing(M::kind_, &mutex);
    std::unique_lock<std::mutex> inner(mutex.lock_, std::adopt_lock);
    wait(inner);
    inner.release();
    lock_check::taken(M::kind_, &mutex);
  }

  std::condition_variable changed_;
};

#endif

}  // namespace artifex_devices
