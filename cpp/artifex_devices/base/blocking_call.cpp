// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/blocking_call.h"

#include <atomic>

#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

std::atomic<BlockingCallHook> g_blocking_call_hook{nullptr};

}  // namespace

void set_blocking_call_hook(BlockingCallHook hook) noexcept {
  g_blocking_call_hook.store(hook, std::memory_order_release);
}

void run_blocking(void (*work)(void*), void* argument) {
  no_lock_held("run_blocking");
  const BlockingCallHook hook = g_blocking_call_hook.load(std::memory_order_acquire);
  if (hook != nullptr) {
    hook(work, argument);
  } else {
    work(argument);
  }
}

}  // namespace artifex_devices
