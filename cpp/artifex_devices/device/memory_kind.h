// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace artifex_devices {

/// The kinds of memory of a CPU device, as in JAX. They differ in their pages:
///   device         near the device's cores, advised to be huge pages;
///   pinned_host    the same, locked in RAM (mlock) up to the limit of the process: never swapped, never moved;
///   unpinned_host  ordinary pages, where the thread that touches them first runs; no advice.
enum class MemoryKind : uint8_t { kDevice, kPinnedHost, kUnpinnedHost };
inline constexpr std::array kMemoryKinds{MemoryKind::kDevice, MemoryKind::kPinnedHost, MemoryKind::kUnpinnedHost};

std::string_view to_string(MemoryKind kind) noexcept;  // "device", "pinned_host", "unpinned_host"
/// Throws InvalidArgument naming the kinds.
MemoryKind memory_kind_from_name(std::string_view name, std::string_view operation);

}  // namespace artifex_devices
