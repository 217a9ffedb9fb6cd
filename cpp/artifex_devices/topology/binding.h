// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// Binds the calling thread to CPUs of the live machine. On XML and synthetic machines, and where hwloc or the system
/// do not support binding, these functions do nothing and return false.
bool bind_this_thread(const Machine& machine, const CpuSet& cpus) noexcept;

/// Asks the system to take the pages of [data, data + bytes) from one NUMA node (preferred, not strict: if the node is
/// full, other nodes are used). `data` is page-aligned. Pages already touched stay where they are.
bool bind_memory(const Machine& machine, int numa_logical_index, void* data, size_t bytes) noexcept;

/// Asks the system to interleave the pages of [data, data + bytes) over all NUMA nodes.
bool interleave_memory(const Machine& machine, void* data, size_t bytes) noexcept;

}  // namespace artifex_devices
