// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_devices/array/array.h"

namespace artifex_devices {

/// The memory of an array in this process at one moment, and the number of its other users.
struct ArrayMemory {
  int64_t device_bytes_min = 0;  // logical: of the devices' shards
  int64_t device_bytes_max = 0;
  int64_t logical_bytes = 0;   // of the devices of all processes, replicas counted
  int64_t physical_bytes = 0;  // each distinct buffer once, without padding for alignment
  int64_t devices = 0;
  int64_t buffers = 0;         // distinct ones
  int64_t blocks = 0;          // blocks of memory that contain the buffers
  int64_t foreign_blocks = 0;  // blocks of the caller's memory: an aliased host ndarray
  int64_t locked_blocks = 0;   // blocks with pages locked in RAM
  int64_t slab_stride = 0;     // bytes from buffer to buffer if all are in one slab; 0 otherwise
  /// Handles on the same memory besides the array's own: exported views, other arrays, running transfers.
  int64_t other_users = 0;
  bool is_shard = false;  // taken out of an array, sharing its memory
};

/// Throws DeletedArray.
ArrayMemory memory_of(const Array& array);

}  // namespace artifex_devices
