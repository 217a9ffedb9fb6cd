// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/memory_kind.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

std::string_view to_string(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::kDevice:
      return "device";
    case MemoryKind::kPinnedHost:
      return "pinned_host";
    case MemoryKind::kUnpinnedHost:
      return "unpinned_host";
  }
  return "device";
}

MemoryKind memory_kind_from_name(std::string_view name, std::string_view operation) {
  for (const MemoryKind kind : kMemoryKinds) {
    if (name == to_string(kind)) return kind;
  }
  throw_error(
      "{}: memory_kind {:?} is unknown; expected one of the memory kinds of a CPU device, 'device', 'pinned_host' and "
      "'unpinned_host'; write one of them",
      operation, name);
}

}  // namespace artifex_devices
