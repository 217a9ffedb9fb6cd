// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/machine_objects.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>

#include "artifex_devices/topology/loaded_machine.h"

namespace artifex_devices {
namespace {

int to_index(unsigned index) { return index == HWLOC_UNKNOWN_INDEX ? -1 : static_cast<int>(index); }

int64_t to_bytes(uint64_t bytes) { return static_cast<int64_t>(std::min(bytes, uint64_t{1} << 60)); }

std::string trimmed(const char* text) {
  std::string plain = text ? text : "";
  const size_t first = plain.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return plain.substr(first, plain.find_last_not_of(" \t") + 1 - first);
}

MachineObject describe(hwloc_obj_t object, int depth) {
  MachineObject made;
  made.depth = depth;
  made.type = hwloc_obj_type_string(object->type);
  made.logical_index = to_index(object->logical_index);
  made.os_index = to_index(object->os_index);
  made.name = trimmed(object->name);
  made.subtype = trimmed(object->subtype);
  for (const char* key : {"GPUModel", "CPUModel", "PCIDevice"}) {
    if (made.model.empty()) {
      made.model = trimmed(hwloc_obj_get_info_by_name(object, key));
    }
  }
  if (object->cpuset && hwloc_bitmap_weight(object->cpuset) > 0) {
    for (int cpu = hwloc_bitmap_first(object->cpuset); cpu >= 0; cpu = hwloc_bitmap_next(object->cpuset, cpu)) {
      made.cpus.cpus.push_back(cpu);
    }
  }
  if (!object->attr) return made;
  if (object->type == HWLOC_OBJ_NUMANODE) made.bytes = to_bytes(object->attr->numanode.local_memory);
  if (hwloc_obj_type_is_cache(object->type) || object->type == HWLOC_OBJ_MEMCACHE) {
    made.bytes = to_bytes(object->attr->cache.size);
  }
  if (object->type == HWLOC_OBJ_PCI_DEVICE) {
    const auto& pci = object->attr->pcidev;
    made.pci =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", static_cast<unsigned>(pci.domain), static_cast<unsigned>(pci.bus),
                    static_cast<unsigned>(pci.dev), static_cast<unsigned>(pci.func));
  }
  return made;
}

void collect(std::vector<MachineObject>& all, hwloc_obj_t object, int depth) {
  all.push_back(describe(object, depth));
  for (hwloc_obj_t first : {object->memory_first_child, object->first_child, object->io_first_child}) {
    for (hwloc_obj_t child = first; child; child = child->next_sibling) collect(all, child, depth + 1);
  }
}

}  // namespace

std::vector<MachineObject> machine_objects(const Machine& machine) {
  std::vector<MachineObject> all;
  const auto* loaded = dynamic_cast<const LoadedMachine*>(&machine);
  if (loaded && loaded->topology()) {
    collect(all, hwloc_get_root_obj(loaded->topology()), 0);
    for (const NumaNode& node : machine.numa_nodes()) {  // the machine may know more than hwloc
      for (MachineObject& each : all) {
        if (each.type == "NUMANode" && each.os_index == node.os_index) each.bytes = node.memory_bytes;
      }
    }
    return all;
  }
  MachineObject root;
  root.type = "Machine";
  for (const CpuDomain& domain : machine.cpu_domains()) {
    root.cpus.cpus.insert(root.cpus.cpus.end(), domain.cpus.cpus.begin(), domain.cpus.cpus.end());
  }
  std::ranges::sort(root.cpus.cpus);
  all.push_back(root);
  for (const NumaNode& node : machine.numa_nodes()) {
    MachineObject made;
    made.depth = 1;
    made.type = "NUMANode";
    made.logical_index = node.logical_index;
    made.os_index = node.os_index;
    made.subtype = node.subtype;
    made.cpus = node.cpus;
    made.bytes = node.memory_bytes;
    all.push_back(std::move(made));
  }
  for (size_t i = 0; i < root.cpus.cpus.size(); ++i) {
    MachineObject made;
    made.depth = 1;
    made.type = "PU";
    made.logical_index = static_cast<int>(i);
    made.os_index = root.cpus.cpus[i];
    made.cpus.cpus = {root.cpus.cpus[i]};
    all.push_back(std::move(made));
  }
  return all;
}

int64_t last_level_cache_bytes(const Machine& machine, const CpuSet& cpus) {
  int64_t second = 0;
  int64_t third = 0;
  for (const MachineObject& object : machine_objects(machine)) {
    int64_t* const sum = object.type == "L3Cache" ? &third : object.type == "L2Cache" ? &second : nullptr;
    if (sum == nullptr) continue;
    const bool serves =
        std::ranges::any_of(object.cpus.cpus, [&](int cpu) { return std::ranges::binary_search(cpus.cpus, cpu); });
    if (serves) *sum += object.bytes;
  }
  return third > 0 ? third : second;
}

}  // namespace artifex_devices
