// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artifex_devices {

/// Asked between the pieces of long copies and every 20 ms of a wait, on the thread that called into the library and
/// never on a worker. True means: stop and throw `Interrupted`. The bindings install one that looks for Ctrl-C.
using InterruptHook = bool (*)();

void set_interrupt_hook(InterruptHook hook) noexcept;

/// Throws `Interrupted` when the hook says so; without a hook does nothing.
void check_interrupt();

}  // namespace artifex_devices
