// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/deferred_executor.h"

#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

constinit Mutex<"deferred copies"> g_mutex;  // for all worlds: a fork must hold only one

HeldOverFork g_held_over_fork(g_mutex);

// The next number of SplitMix64 (Steele, Lea and Flood 2014).
uint64_t next_random(uint64_t& state) noexcept {
  uint64_t z = state += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace

/// Copies that are ready. An event that waits for them does not keep them alive.
struct DeferredExecutor::Tasks {
  uint64_t random;                                          // state of the sequence
  std::multimap<uint64_t, std::function<void()>> by_place;  // in the order drawn

  void add(std::function<void()> task) {
    const std::lock_guard lock(g_mutex);
    by_place.emplace(next_random(random), std::move(task));
  }

  /// Returns false without a task.
  bool run_one() {
    std::function<void()> task;
    {
      const std::lock_guard lock(g_mutex);
      if (by_place.empty()) return false;
      task = std::move(by_place.begin()->second);
      by_place.erase(by_place.begin());
    }
    no_lock_held("a deferred copy");
    task();
    return true;
  }
};

DeferredExecutor::DeferredExecutor(uint64_t seed, std::shared_ptr<WorkerPoolExecutor> copies)
    : copies_(std::move(copies)), tasks_(std::make_shared<Tasks>(Tasks{seed, {}})) {}

EventRef DeferredExecutor::submit(std::shared_ptr<CopyBatch> batch, const EventRef& after) {
  auto ready = std::make_shared<Event>();
  ready->set_helper([before = after ? helper_of(after) : nullptr, tasks = std::weak_ptr(tasks_)] {
    if (before && before()) return true;
    const std::shared_ptr<Tasks> own = tasks.lock();
    return own && own->run_one();
  });
  auto begin = [tasks = tasks_, copies = copies_](const auto& each, const auto& done) {
    tasks->add([copies, each, done] { copies->run_here(*each, done); });
  };
  return begin_after(after, std::move(batch), std::move(begin), std::move(ready));
}

void DeferredExecutor::finish() {
  while (tasks_->run_one()) {
  }
}

}  // namespace artifex_devices
