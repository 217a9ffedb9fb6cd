// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace artifex_devices {

enum class AllocatorKind : uint8_t { kDefault, kPlatform, kBfc, kCudaAsync };
std::string_view to_string(AllocatorKind kind) noexcept;  // "DEFAULT", "PLATFORM", "BFC", "CUDA_ASYNC"

/// How a client takes memory from the system.
struct AllocatorOptions {
  /// kBfc and kDefault: the caching allocator (device/arena.h). kPlatform: each array's pages come straight from the
  /// system and go straight back. kCudaAsync: not on a CPU.
  AllocatorKind kind = AllocatorKind::kDefault;
  /// Of each device's memory_bytes, that its arrays may hold in the kind `device`: greater than 0, at most 1.
  double memory_fraction = 0.75;
  /// Takes that much from the system when the client is made, and touches it. Not with kPlatform.
  bool preallocate = false;
  /// Bytes for collectives alone. A CPU's collectives work in the arrays' own memory: kept, and without effect.
  int64_t collective_memory_size = 0;

  /// Throws InvalidArgument naming all fields whose values are out of range.
  void check(std::string_view operation) const;
  /// The same, and what a CPU cannot do.
  void check_for_cpu(std::string_view operation) const;
};

}  // namespace artifex_devices
