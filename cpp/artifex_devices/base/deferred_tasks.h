// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "artifex_devices/base/event.h"

namespace artifex_devices {

/// Tasks of one world that are ready and run as late as possible: when a thread waits for an event of the world that is
/// not set, it runs its tasks one by one, in an order drawn from a seed, until the event is set. A program that reads
/// data without waiting for its event then finds it unwritten in every run, and a program that relies on an order that
/// no event demands fails for some seeds.
///
/// The order of a world does not depend on other worlds: each task draws its place from the world's own sequence when
/// it is added, and a thread runs tasks of other worlds only if the world that it waits for has none.
///
/// Thread-safe; the order is repeatable while one thread adds and waits. A forked child has no tasks.
class DeferredTasks {
 public:
  explicit DeferredTasks(uint64_t seed);

  /// The number of this world for Event::set_world, 1 or more.
  int64_t world() const noexcept { return world_; }
  /// `task` must not throw or wait.
  void add(std::function<void()> task);
  /// Runs one task of this world on this thread. Returns false if there is none.
  bool run_one();

  /// Runs one task for a thread that waits for an event of `world`: a task of that world, or else of the oldest world
  /// that has one, as the event may depend on it. Returns false if there is none; always for world 0.
  static bool run_one_for(int64_t world);
  /// Returns whether the event is set, after a task if it was not, so that a program that polls makes progress.
  static bool poll(const EventRef& event) {
    if (!is_ready(event)) run_one_for(event->world());
    return is_ready(event);
  }

 private:
  int64_t world_;
  uint64_t random_;  // state of the sequence; guarded by the mutex of all tasks
};

}  // namespace artifex_devices
