// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "artifex_devices/sharding/sharding.h"
#include "artifex_devices/transfer/reshard.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// reshard(), also between processes, by the client's transport (artifex_devices.distributed.transport). Call it with
/// the GIL, which it drops while it copies.
ArrayRef reshard_anywhere(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options);

/// Raises ValueError in all processes of a sharding that is not fully addressable if their values differ. `what` is
/// dtype and shape, for messages. Call it with the GIL.
void check_same_everywhere(const HostView& value, const Sharding& sharding, const std::string& what);

/// Reports to the processes that wait in check_same_everywhere that this one has no value, and why. Call it with the
/// GIL.
void refuse_same_everywhere(const Sharding& sharding, const std::string& what, const std::string& reason);

/// Warns, once in a process, that pages of pinned_host could not be locked. Needs the GIL; throws where warnings are
/// errors.
void warn_of_unlocked_pages();

/// Call it after placing an Array with `sharding`.
inline void after_placing(const Sharding& sharding) {
  if (sharding.memory_kind() == MemoryKind::kPinnedHost && has_page_lock_trouble()) warn_of_unlocked_pages();
}

}  // namespace artifex_devices::bindings
