// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/deferred_tasks.h"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <random>
#include <utility>
#include <vector>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

struct Deferred {
  Mutex<"deferred tasks"> mutex;
  std::mt19937_64 random;
  std::vector<std::function<void()>> tasks;
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

}  // namespace

void DeferredTasks::seed(uint64_t seed) {
  const std::lock_guard lock(deferred().mutex);
  deferred().random.seed(seed);
}

void DeferredTasks::add(std::function<void()> task) {
  const std::lock_guard lock(deferred().mutex);
  deferred().tasks.push_back(std::move(task));
  deferred().count.fetch_add(1, std::memory_order_release);
}

bool DeferredTasks::run_one() {
  if (deferred().count.load(std::memory_order_acquire) == 0) return false;
  std::function<void()> task;
  {
    const std::lock_guard lock(deferred().mutex);
    auto& tasks = deferred().tasks;
    if (tasks.empty()) return false;
    std::swap(tasks[deferred().random() % tasks.size()], tasks.back());
    task = std::move(tasks.back());
    tasks.pop_back();
    deferred().count.fetch_sub(1, std::memory_order_release);
  }
  no_lock_held("a deferred task");
  task();
  return true;
}

}  // namespace artifex_devices
