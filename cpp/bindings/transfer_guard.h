// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"
#include "scopes.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

enum class TransferDirection : uint8_t { kHostToDevice, kDeviceToDevice, kDeviceToHost };

/// How a message speaks of a transfer; made only when one is needed.
struct TransferText {
  std::string operation;  // what the user called
  std::string shape;
  std::string dtype;
  std::string source;
  std::string target;
};

enum class GuardVerdict : uint8_t { kAllow, kLog, kRefuse };

/// What the guards of the calling context say. Device-to-host is always allowed: on CPU it is no transfer.
GuardVerdict guard_verdict(TransferDirection direction, bool is_explicit);

/// Logs (at WARNING, logger "artifex_devices") or throws TransferGuardError.
void act_on_verdict(GuardVerdict verdict, TransferDirection direction, bool is_explicit, const TransferText& text);

/// To be called before data moves, with the GIL and without a lock of the core: handlers of the log are Python.
/// `is_explicit`: the user asked for this transfer by name (the device_put family). `describe` gives the TransferText.
template <class Describe>
void check_transfer(TransferDirection direction, bool is_explicit, Describe&& describe) {
  if (!scopes_matter()) return;
  const GuardVerdict verdict = guard_verdict(direction, is_explicit);
  if (verdict == GuardVerdict::kAllow) return;
  act_on_verdict(verdict, direction, is_explicit, std::forward<Describe>(describe)());
}

/// Whether each device of `target` already holds what it would get of `source`, in the same kind of memory.
bool lies_there(const Array& source, const Sharding& target);

void bind_transfer_guard(py::module_& module);

}  // namespace artifex_devices::bindings
