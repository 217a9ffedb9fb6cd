// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace artifex_devices {

enum class AllocatorKind : uint8_t { kDefault, kPlatform, kBfc, kCudaAsync };
std::string_view to_string(AllocatorKind kind) noexcept;  // "DEFAULT", "PLATFORM", "BFC", "CUDA_ASYNC"

/// A client's options for memory from the system.
struct AllocatorOptions {
  /// kBfc and kDefault: the caching allocator (device/cpu/arena.h). kPlatform: each array's pages are mapped and
  /// unmapped directly, without a cache. kCudaAsync: not supported on a CPU; on emulated GPUs the same as kBfc.
  AllocatorKind kind = AllocatorKind::kDefault;
  /// Fraction of each device's memory_bytes that arrays in the kind `device` may use: greater than 0, at most 1.
  double memory_fraction = 0.75;
  /// Whether that memory is taken from the system and touched when the client is created. Not with kPlatform.
  bool preallocate = false;
  /// Bytes reserved for collectives. Recorded without effect: collectives on a CPU work in the arrays' own memory.
  int64_t collective_memory_size = 0;

  /// The options in JAX's environment variables XLA_PYTHON_CLIENT_ALLOCATOR, XLA_PYTHON_CLIENT_MEM_FRACTION and
  /// XLA_PYTHON_CLIENT_PREALLOCATE; nothing where none is set. Throws InvalidArgument for a malformed value. Call with
  /// the GIL held.
  static std::optional<AllocatorOptions> from_environment();

  /// Throws InvalidArgument naming all fields whose values are out of range.
  void check(std::string_view operation) const;
  /// The same, and for options that a CPU does not support.
  void check_for_cpu(std::string_view operation) const;
};

}  // namespace artifex_devices
