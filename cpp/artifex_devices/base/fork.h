// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices {

/// What a piece of the library does around fork. `prepare` runs from the highest level down and, within one, in reverse
/// order of registration (last registered first); `parent` and `child` the other way round. All run on the forking
/// thread; children must not start threads there. Registered once for good.
///
/// Register when the library is loaded, from a namespace-scope object: a fork while another thread makes its first use
/// of something then finds the lock held, not half a registration. For the same reason nothing that is first touched
/// without Python's lock may be a guarded function-local static: the child would wait for the guard for ever.
struct ForkHandlers {
  void (*prepare)() = nullptr;
  void (*parent)() = nullptr;
  void (*child)() = nullptr;
  /// Of a lock: more than that of each lock that is taken while it is held. 0: workers, names, meshes, live arrays, the
  /// live machine; 1: arenas; 2: the base client.
  int level = 0;
};

void register_fork_handlers(const ForkHandlers& handlers);

/// 0 in the process that loaded the library, one more in each forked descendant.
int64_t fork_generation() noexcept;

}  // namespace artifex_devices
