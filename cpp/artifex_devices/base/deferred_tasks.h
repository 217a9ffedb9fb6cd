// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "artifex_devices/base/event.h"

namespace artifex_devices {

/// Tasks that are ready and run as late as possible: when a thread waits for an event that is not set, it runs tasks
/// one by one, in an order drawn from a seed, until the event is set. A program that reads data without waiting for its
/// event then finds it unwritten in every run, and a program that relies on an order that no event demands fails for
/// some seeds.
///
/// The tasks belong to the process. Thread-safe; the order is repeatable while one thread adds and waits. A forked
/// child has no tasks.
class DeferredTasks {
 public:
  /// Begins another sequence of random numbers.
  static void seed(uint64_t seed);
  /// `task` must not throw or wait.
  static void add(std::function<void()> task);
  /// Runs one task on this thread. Returns false if there is none.
  static bool run_one();
  /// Returns whether the event is set, after a task if it was not, so that a program that polls makes progress.
  static bool poll(const EventRef& event) {
    if (!is_ready(event)) run_one();
    return is_ready(event);
  }
};

}  // namespace artifex_devices
