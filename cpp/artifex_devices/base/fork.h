// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace artifex_devices {

// The rule: a forked child may read results that were finished at the fork, and gets fresh pools. Unfinished work is an
// error there, because its threads exist only in the parent. So each piece of global state has one of three forms:
// - behind a lock that is HeldOverFork: the child finds it whole;
// - FreshInChild: the child begins without it;
// - stamped with a Generation, so the child can tell which work its parent left unfinished.

/// Takes part in forks from its construction on. It is never destroyed. Create it when the library is loaded; a later
/// fork could happen during the registration. For the same reason, an object that may first be used without the GIL
/// must not be a guarded function-local static: a forked child would wait for the guard forever.
///
/// `before` runs from the highest level down and, within a level, in reverse order of construction; `in_parent` and
/// `in_child` run in the opposite order. All run on the forking thread and must not start threads in the child.
class AtFork {
 public:
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

  virtual void before() {}
  virtual void in_parent() {}
  virtual void in_child() {}

 protected:
  /// `level`: higher than the level of each lock that is taken while this lock is held. 0: workers, names, meshes, live
  /// arrays, the live machine; 1: arenas; 2: the base client.
  explicit AtFork(int level = 0);
  ~AtFork() = default;
};

/// The forking thread holds `mutex` during the fork, so no other thread changes the data that it guards.
template <class Lockable>
class HeldOverFork final : AtFork {
 public:
  explicit HeldOverFork(Lockable& mutex, int level = 0) : AtFork(level), mutex_(mutex) {}

 private:
  void before() override { mutex_.lock(); }
  void in_parent() override { mutex_.unlock(); }
  void in_child() override { mutex_.unlock(); }

  Lockable& mutex_;
};

/// An object that each forked child creates again. The child abandons the parent's object, whose locks may be in any
/// state.
template <class T>
class FreshInChild final : AtFork {
 public:
  FreshInChild() { in_child(); }
  T& get() noexcept { return *object_; }

 private:
  void in_child() override { object_ = new (memory_) T; }

  alignas(T) std::byte memory_[sizeof(T)];
  T* object_;
};

/// Returns 0 in the process that loaded the library, and one more in each generation of forked children.
int64_t fork_generation() noexcept;

/// The process in which an object was made.
class Generation {
 public:
  /// Whether this is a forked child's copy of an object of its parent.
  bool is_of_parent() const noexcept { return made_in_ != fork_generation(); }

 private:
  int64_t made_in_ = fork_generation();
};

}  // namespace artifex_devices
