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
  int logical_index = 0;  // index among the objects of its type, from 0
  int os_index = -1;      // number in the operating system; -1: none
  std::string name;       // of OS devices: "cuda0"
  std::string subtype;    // "HBM", "Die", "GPU", or ""
  std::string model;      // model name reported by the hardware, or ""
  std::string pci;        // address on the PCI bus: "0000:3b:00.0"
  CpuSet cpus;            // empty for devices, and for memory without CPUs
  int64_t bytes = 0;      // memory of a NUMA node, size of a cache; else 0
};

/// Returns all objects of a machine, parents before their children; among siblings, memory comes first and devices
/// last. A machine without a topology has its NUMA nodes and PUs only.
///
///     for (const MachineObject& object : machine_objects(*Machine::from_synthetic("numa:2 pu:1")))
///       object.type;  // Machine, Group, NUMANode, PU, Group, NUMANode, PU
std::vector<MachineObject> machine_objects(const Machine& machine);

/// Returns the bytes of the last-level caches of some CPUs: of the third level, or the second if there is no third; 0
/// if unknown. A cache shared with other CPUs counts in full.
int64_t last_level_cache_bytes(const Machine& machine, const CpuSet& cpus);

}  // namespace artifex_devices
