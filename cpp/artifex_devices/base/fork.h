// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace artifex_devices {

/// What a piece of the library does around fork. `prepare` runs in reverse order of registration (last registered
/// first), `parent` and `child` in order of registration. All run on the forking thread; children must not start
/// threads there. Registered once for good.
struct ForkHandlers {
  void (*prepare)() = nullptr;
  void (*parent)() = nullptr;
  void (*child)() = nullptr;
};

void register_fork_handlers(const ForkHandlers& handlers);

/// 0 in the process that loaded the library, one more in each forked descendant.
int64_t fork_generation() noexcept;

}  // namespace artifex_devices
