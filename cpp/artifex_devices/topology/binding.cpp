// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/binding.h"

#include <hwloc.h>

#include <memory>

#include "artifex_devices/topology/loaded_machine.h"

namespace artifex_devices {
namespace {

// Returns the topology to bind with, or null: on machines that are not live, hwloc reports success and does nothing.
hwloc_topology_t bindable(const Machine& machine) noexcept {
  const auto* loaded = dynamic_cast<const LoadedMachine*>(&machine);
  if (!loaded || !loaded->is_live() || !loaded->topology()) return nullptr;
  return hwloc_topology_is_thissystem(loaded->topology()) ? loaded->topology() : nullptr;
}

}  // namespace

bool bind_this_thread(const Machine& machine, const CpuSet& cpus) noexcept {
  const hwloc_topology_t topology = bindable(machine);
  if (!topology || cpus.cpus.empty()) return false;
  if (!hwloc_topology_get_support(topology)->cpubind->set_thisthread_cpubind) return false;
  const Bitmap set(hwloc_bitmap_alloc());
  if (!set) return false;
  for (const int cpu : cpus.cpus) {
    if (cpu < 0 || hwloc_bitmap_set(set.get(), static_cast<unsigned>(cpu)) < 0) return false;
  }
  return hwloc_set_cpubind(topology, set.get(), HWLOC_CPUBIND_THREAD) == 0;
}

bool bind_memory(const Machine& machine, int numa_logical_index, void* data, size_t bytes) noexcept {
  const hwloc_topology_t topology = bindable(machine);
  if (!topology || numa_logical_index < 0 || bytes == 0) return false;
  if (!hwloc_topology_get_support(topology)->membind->set_area_membind) return false;
  const hwloc_obj_t node =
      hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(numa_logical_index));
  if (!node) return false;
  // By nodeset: a CPU set cannot name nodes without CPUs, and is ambiguous if two nodes share CPUs.
  return hwloc_set_area_membind(topology, data, bytes, node->nodeset, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) == 0;
}

bool interleave_memory(const Machine& machine, void* data, size_t bytes) noexcept {
  const hwloc_topology_t topology = bindable(machine);
  if (!topology || bytes == 0) return false;
  const auto* support = hwloc_topology_get_support(topology)->membind;
  if (!support->set_area_membind || !support->interleave_membind) return false;
  const Bitmap nodes(hwloc_bitmap_dup(hwloc_topology_get_topology_nodeset(topology)));
  if (!nodes) return false;
  for (const NumaNode& node : machine.numa_nodes()) {
    if (node.is_gpu_memory()) hwloc_bitmap_clr(nodes.get(), static_cast<unsigned>(node.os_index));
  }
  return hwloc_set_area_membind(topology, data, bytes, nodes.get(), HWLOC_MEMBIND_INTERLEAVE,
                                HWLOC_MEMBIND_BYNODESET) == 0;
}

}  // namespace artifex_devices
