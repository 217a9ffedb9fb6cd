// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices {

/// Functions of one part of the library that run around fork. `prepare` runs from the highest level down and, within a
/// level, in reverse order of registration; `parent` and `child` run in the opposite order. All run on the forking
/// thread and must not start threads in the child. Registration is permanent.
///
/// Register when the library is loaded, from an object at namespace scope, so that no fork can see half a registration.
/// For the same reason nothing that is first used without the GIL may be a guarded function-local static: a forked
/// child would wait for the guard forever.
struct ForkHandlers {
  void (*prepare)() = nullptr;
  void (*parent)() = nullptr;
  void (*child)() = nullptr;
  /// Higher than the level of each lock that is taken while this one is held. 0: workers, names, meshes, live arrays,
  /// the live machine; 1: arenas; 2: the base client.
  int level = 0;
};

void register_fork_handlers(const ForkHandlers& handlers);

/// Returns 0 in the process that loaded the library, and one more in each generation of forked children.
int64_t fork_generation() noexcept;

}  // namespace artifex_devices
