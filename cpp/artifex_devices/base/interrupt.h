// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artifex_devices {

/// Called between the pieces of long copies and every 20 ms of a wait, on the thread that called the library, never on
/// a worker. If it returns true, the operation throws `Interrupted`. The bindings install a hook that checks for
/// Ctrl-C.
using InterruptHook = bool (*)();

void set_interrupt_hook(InterruptHook hook) noexcept;

/// Throws `Interrupted` if the hook returns true. Without a hook does nothing.
void check_interrupt();

}  // namespace artifex_devices
