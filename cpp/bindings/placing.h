// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "artifex_devices/sharding/sharding.h"
#include "artifex_devices/transfer/reshard.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// reshard(), also between processes. With the GIL; drops it while it copies. What goes to other processes goes by the
/// client's transport (artifex_devices.distributed.transport).
ArrayRef reshard_anywhere(const ArrayRef& source, const ShardingRef& sharding, const ReshardOptions& options);

/// Raises ValueError in all processes of a sharding that is not fully addressable where they do not come with the same
/// value. `what` is shape and dtype, for messages. With the GIL.
void check_same_everywhere(const HostView& value, const Sharding& sharding, const std::string& what);

/// The UserWarning that pages of pinned_host could not be locked, given once in a process. Needs the GIL; throws where
/// warnings are errors.
void warn_of_unlocked_pages();

/// To be called after something was placed with `sharding`.
inline void after_placing(const Sharding& sharding) {
  if (sharding.memory_kind() == MemoryKind::kPinnedHost && has_page_lock_trouble()) warn_of_unlocked_pages();
}

}  // namespace artifex_devices::bindings
