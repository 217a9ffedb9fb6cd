// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "artifex_devices/device/client.h"
#include "artifex_devices/transfer/transfer_guard.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Settings of the process that a context can override: `config.update` and environment variables set the process's
/// value, a `with` block that of its context. Contexts are Python's context variables, so a new thread of the user
/// starts without overrides. All functions need the GIL.
enum class ScopedOption : uint8_t {
  kGuardHostToDevice,
  kGuardDeviceToDevice,
  kGuardDeviceToHost,
  kGuardAll,  // the last value set for all three; read only
  kDefaultDevice,
  kEnableX64,
};
inline constexpr size_t kScopedOptions = 6;

namespace detail {
extern std::atomic<bool> scopes_matter;
}

/// False while the process has never set a guard, default device or x64 option to another value than its default. Small
/// arrays check only this.
inline bool scopes_matter() noexcept { return detail::scopes_matter.load(std::memory_order_relaxed); }

/// The value for the calling context: a str, Device, bool or None. The first call reads the environment and throws
/// InvalidArgument that names every malformed variable.
py::object scoped_value(ScopedOption option);

/// The transfer guards of the calling context. Log levels report to the logger "artifex_devices" as warnings, whose
/// handlers are Python code: use them with the GIL.
TransferGuards scoped_transfer_guards();
inline TransferGuards transfer_guards() { return scopes_matter() ? scoped_transfer_guards() : TransferGuards{}; }

/// Whether the calling context keeps 64-bit host data at 64 bits.
bool x64_enabled();

/// The device of uncommitted data in the calling context: its default device if that belongs to the current world, else
/// the world's first device. Throws Unavailable if the default is a platform that is not available.
Device* default_device();

/// Throws Unavailable if jax_platforms requests a platform that is not available. For the first use of the base client.
void check_platforms();

/// Throws Unavailable if jax_platform_name, the platform of calls that name none, is not available.
void check_preferred_platform();

[[gnu::cold]] void bind_scopes(py::module_& module);

}  // namespace artifex_devices::bindings
