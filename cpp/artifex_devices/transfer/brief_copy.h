// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "artifex_devices/base/blocking_call.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Whether a copy that writes at most `bytes` is cheaper than dropping the lock of an interpreter, and is made by the
/// calling thread alone: a thread with that lock must not wait for workers, which may depend on code that needs it.
inline bool is_brief_copy(int64_t bytes) noexcept {
  constexpr int64_t kMaxBytes = int64_t{64} << 10;
  const Config& limits = config();
  return bytes < kMaxBytes && bytes < limits.parallel_copy_bytes.load(std::memory_order_relaxed) &&
         bytes < limits.async_copy_bytes.load(std::memory_order_relaxed);
}

/// The same for copies of `bytes` to all buffers of a sharding, or from it: each NUMA node's memory has its own
/// replica. A copy of a GPU may wait for work of other libraries, which may need the lock.
inline bool is_brief_copy(int64_t bytes, const Sharding& sharding) noexcept {
  if (sharding.devices()->client()->copy_engine() != nullptr) return false;
  if (sharding.buffers().is_tile()) return is_brief_copy(bytes);
  const int64_t copies = std::max<int64_t>(1, 1 + sharding.buffers().size() - sharding.grid().tiles());
  return is_brief_copy(bytes) && is_brief_copy(bytes * copies);
}

/// Runs a copy, and releases the interpreter's lock unless the copy is brief. All copies that the bindings begin go
/// through here.
template <class Copy>
auto run_copy(bool is_brief, Copy&& copy) {
  return is_brief ? copy() : run_blocking(std::forward<Copy>(copy));
}

}  // namespace artifex_devices
