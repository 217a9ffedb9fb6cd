// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices::bindings {

/// Warns, once in a process, that pages of pinned_host could not be locked. Needs the GIL; throws where warnings are
/// errors.
void warn_of_unlocked_pages();

/// Call it after placing an Array with `sharding`.
inline void after_placing(const Sharding& sharding) {
  if (sharding.memory_kind() == MemoryKind::kPinnedHost && has_page_lock_trouble()) warn_of_unlocked_pages();
}

}  // namespace artifex_devices::bindings
