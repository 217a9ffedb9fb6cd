// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/deferred_tasks.h"

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

using Tasks = std::multimap<std::pair<int64_t, uint64_t>, std::function<void()>>;  // by world and place in its order

struct Deferred {
  Mutex<"deferred tasks"> mutex;
  Tasks tasks;
  std::atomic<size_t> count{0};  // of `tasks`, for waiting threads
};

// Never destroyed. A forked child begins with another object: the tasks are those of the parent.
Deferred& deferred() {
  alignas(Deferred) static std::byte memory[sizeof(Deferred)];
  static Deferred* const made = [] {
    register_fork_handlers({.child = [] { new (memory) Deferred; }});
    return new (memory) Deferred;
  }();
  return *made;
}

[[maybe_unused]] const Deferred& g_deferred_made_at_load = deferred();  // so that no fork sees a half-initialized one

std::atomic<int64_t> g_last_world{0};

// The next number of SplitMix64 (Steele, Lea and Flood 2014).
uint64_t next_random(uint64_t& state) noexcept {
  uint64_t z = state += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// Runs the first task of the world; with `or_other`, of the oldest world that has tasks if this one has none.
bool run_first_of(int64_t world, bool or_other) {
  if (deferred().count.load(std::memory_order_acquire) == 0) return false;
  std::function<void()> task;
  {
    const std::lock_guard lock(deferred().mutex);
    Tasks& tasks = deferred().tasks;
    auto first = tasks.lower_bound({world, 0});
    if (first == tasks.end() || first->first.first != world) {
      if (!or_other || tasks.empty()) return false;
      first = tasks.begin();
    }
    task = std::move(first->second);
    tasks.erase(first);
    deferred().count.fetch_sub(1, std::memory_order_release);
  }
  no_lock_held("a deferred task");
  task();
  return true;
}

}  // namespace

DeferredTasks::DeferredTasks(uint64_t seed)
    : world_(g_last_world.fetch_add(1, std::memory_order_relaxed) + 1), random_(seed) {}

void DeferredTasks::add(std::function<void()> task) {
  const std::lock_guard lock(deferred().mutex);
  deferred().tasks.emplace(std::pair(world_, next_random(random_)), std::move(task));
  deferred().count.fetch_add(1, std::memory_order_release);
}

bool DeferredTasks::run_one() { return run_first_of(world_, false); }

bool DeferredTasks::run_one_for(int64_t world) { return world != 0 && run_first_of(world, true); }

}  // namespace artifex_devices
