// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/interrupt.h"

#include <atomic>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

std::atomic<InterruptHook> g_interrupt_hook{nullptr};

}  // namespace

void set_interrupt_hook(InterruptHook hook) noexcept { g_interrupt_hook.store(hook, std::memory_order_release); }

void check_interrupt() {
  no_lock_held("check_interrupt");
  const InterruptHook hook = g_interrupt_hook.load(std::memory_order_acquire);
  if (hook != nullptr && hook()) throw Interrupted("interrupted: the call was stopped by a signal");
}

}  // namespace artifex_devices
