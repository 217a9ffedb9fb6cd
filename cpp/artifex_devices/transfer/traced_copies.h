// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artifex_devices {

/// Ends the events of copies in the background that have finished. A thread that waits for such a copy may go on before
/// the worker has ended its event; the end of a trace calls this.
void end_traced_copies() noexcept;

}  // namespace artifex_devices
