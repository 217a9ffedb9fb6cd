// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/fork.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

struct Registry {
  Mutex<"fork handlers", LockUse::kFork> mutex;  // held by the forking thread from prepare to parent or child
  struct Handler {
    int level;
    AtFork* object;
  };
  std::vector<Handler> handlers;  // by level
};

constinit std::atomic<int64_t> g_generation{0};

Registry& registry();

void prepare() {
  Registry& all = registry();
  all.mutex.lock();
  for (auto it = all.handlers.rbegin(); it != all.handlers.rend(); ++it) it->object->before();
}

void parent() {
  Registry& all = registry();
  for (const Registry::Handler& each : all.handlers) each.object->in_parent();
  all.mutex.unlock();
}

void child() {
  Registry& all = registry();
  g_generation.fetch_add(1, std::memory_order_acq_rel);  // first: every handler must see the new number
  for (const Registry::Handler& each : all.handlers) each.object->in_child();
  all.mutex.unlock();
}

// Leaked: a fork may come from an exit handler.
Registry& registry() {
  static Registry& all = []() -> Registry& {
    auto* made = new Registry;
    if (pthread_atfork(prepare, parent, child) != 0) throw std::bad_alloc();
    return *made;
  }();
  return all;
}

// Counting starts when the library is loaded, not at the first registration.
[[maybe_unused]] const Registry& g_installed = registry();

}  // namespace

AtFork::AtFork(int level) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.handlers.insert(std::ranges::upper_bound(all.handlers, level, {}, &Registry::Handler::level), {level, this});
}

int64_t fork_generation() noexcept { return g_generation.load(std::memory_order_acquire); }

}  // namespace artifex_devices
