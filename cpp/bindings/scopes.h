// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "artifex_devices/device/client.h"
#include "artifex_devices/transfer/transfer_guard.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Settings of the process that a context may hold otherwise: `config.update` and environment variables set the
/// process's value, a `with` block that of its context. Contexts are Python's context variables, so a new thread of the
/// user starts with none. All of this needs the GIL.
enum class ScopedOption : uint8_t {
  kGuardHostToDevice,
  kGuardDeviceToDevice,
  kGuardDeviceToHost,
  kGuardAll,  // what was last asked for all three; only to be read
  kDefaultDevice,
  kEnableX64,
};
inline constexpr size_t kScopedOptions = 6;

namespace detail {
extern std::atomic<bool> scopes_matter;
}

/// False as long as no guard, default device or x64 setting but the defaults was ever made in the process: then every
/// option has its default. It is what the way of a small array asks first.
inline bool scopes_matter() noexcept { return detail::scopes_matter.load(std::memory_order_relaxed); }

/// The value for the calling context: a str, Device, bool or None. Reads the environment at its first call; throws
/// InvalidArgument naming every malformed variable.
py::object scoped_value(ScopedOption option);

/// The transfer guards of the calling context. Log levels report to the logger "artifex_devices" as warnings, whose
/// handlers are Python code: use them with the GIL.
TransferGuards scoped_transfer_guards();
inline TransferGuards transfer_guards() { return scopes_matter() ? scoped_transfer_guards() : TransferGuards{}; }

/// Whether 64-bit host data stays 64-bit in the calling context.
bool x64_enabled();

/// Where uncommitted data goes in the calling context: its default device where that belongs to the current world, else
/// the world's first device. Throws Unavailable when the default is a platform that is not there.
Device* default_device();

/// Throws Unavailable when jax_platforms asks for a platform that is not there. For the first use of the base client.
void check_platforms();

/// Throws Unavailable when jax_platform_name, the platform of calls that name none, is not there.
void check_preferred_platform();

void bind_scopes(py::module_& module);

}  // namespace artifex_devices::bindings
