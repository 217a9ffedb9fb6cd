// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artifex_devices {

/// Runs `work(argument)`, which does not throw, with the lock of an interpreter dropped if the thread has it.
using BlockingCallHook = void (*)(void (*work)(void*), void* argument);

/// Installed by the bindings.
void set_blocking_call_hook(BlockingCallHook hook) noexcept;

/// Runs work that may block, where the caller may have the lock of an interpreter, such as in the release of memory.
/// Waits of calls that the bindings make themselves do not need it.
void run_blocking(void (*work)(void*), void* argument);

}  // namespace artifex_devices
