// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artifex_devices/topology/accelerators.h"

// Private to topology/*.cpp.
namespace artifex_devices {

/// What stands on the PCI bus, an accelerator or not.
struct PciFunction {
  uint16_t pci_class = 0;  // base and sub class, 0x0302
  PciAccelerator facts;    // but for its kind
};

/// A GPU that Linux's KFD, the driver of ROCm, runs.
struct KfdGpu {
  std::string name;  // "gfx942"; "" where not known
  std::optional<int64_t> memory_bytes;
};

/// Every function in `root`/sys/bus/pci/devices, by address. What cannot be read is told in `problems`.
std::vector<PciFunction> read_sysfs_pci(const std::string& root, std::vector<std::string>& problems);

/// GPUs in `root`/sys/class/kfd/kfd/topology/nodes by PCI address; empty where there is no KFD.
std::map<std::string, KfdGpu> read_kfd_gpus(const std::string& root);

/// "0000:34:00.0".
std::string pci_address(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function);

}  // namespace artifex_devices
