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
  std::vector<ForkHandlers> handlers;
};

constinit std::atomic<int64_t> g_generation{0};

Registry& registry();

void prepare() {
  Registry& all = registry();
  all.mutex.lock();
  for (auto it = all.handlers.rbegin(); it != all.handlers.rend(); ++it) {
    if (it->prepare != nullptr) it->prepare();
  }
}

void parent() {
  Registry& all = registry();
  for (const ForkHandlers& each : all.handlers) {
    if (each.parent != nullptr) each.parent();
  }
  all.mutex.unlock();
}

void child() {
  Registry& all = registry();
  g_generation.fetch_add(1, std::memory_order_acq_rel);  // first, so that the handlers see the new number
  for (const ForkHandlers& each : all.handlers) {
    if (each.child != nullptr) each.child();
  }
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

void register_fork_handlers(const ForkHandlers& handlers) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto place = std::ranges::upper_bound(all.handlers, handlers.level, {}, &ForkHandlers::level);
  all.handlers.insert(place, handlers);
}

int64_t fork_generation() noexcept { return g_generation.load(std::memory_order_acquire); }

}  // namespace artifex_devices
