// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// One object of a machine's tree.
struct MachineObject {
  int depth = 0;          // 0: the machine itself
  std::string type;       // hwloc's: "Machine", "Package", "NUMANode", "L3Cache", "Core", "PU", "PCIDev", "OSDev", ...
  int logical_index = 0;  // number among those of its type, from 0
  int os_index = -1;      // the operating system's number; -1: none
  std::string name;       // of OS devices: "cuda0"
  std::string subtype;    // "HBM", "Die", "GPU", or ""
  std::string model;      // what the hardware calls itself, where hwloc knows
  std::string pci;        // address on the PCI bus: "0000:3b:00.0"
  CpuSet cpus;            // empty for devices, and for memory without CPUs
  int64_t bytes = 0;      // memory of a NUMA node, size of a cache; else 0
};

/// All objects of a machine, parents before their children; of siblings memory comes first and devices last. A machine
/// without a topology has its NUMA nodes and PUs.
///
///     for (const MachineObject& object : machine_objects(*Machine::from_synthetic("numa:2 pu:1")))
///       object.type;  // Machine, Group, NUMANode, PU, Group, NUMANode, PU
std::vector<MachineObject> machine_objects(const Machine& machine);

/// Bytes of the last-level caches of some CPUs: of the third level, or of the second where there is none; 0 where they
/// are not known. A cache that others share counts whole.
int64_t last_level_cache_bytes(const Machine& machine, const CpuSet& cpus);

}  // namespace artifex_devices
