// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// Binding on the live machine. On XML and synthetic machines, and where hwloc's support bits or the system say no,
/// these do nothing and return false: the data is then merely not pinned. The caller's threads are never bound.
bool bind_this_thread(const Machine& machine, const CpuSet& cpus) noexcept;

/// Asks that the pages of [data, data + bytes) come from one NUMA node (preferred, not strict: a full node spills
/// over). `data` is page-aligned. Pages already touched stay where they are.
bool bind_memory(const Machine& machine, int numa_logical_index, void* data, size_t bytes) noexcept;

/// Asks that the pages of [data, data + bytes) come from all NUMA nodes in turn.
bool interleave_memory(const Machine& machine, void* data, size_t bytes) noexcept;

/// The NUMA node (logical index) that page `data` lies on, or -1 where that cannot be known.
int memory_node(const Machine& machine, const void* data) noexcept;

}  // namespace artifex_devices
