// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artifex_devices/topology/accelerators.h"

// Private to topology/*.cpp.
namespace artifex_devices {

/// A function on the PCI bus; it may or may not be an accelerator.
struct PciFunction {
  uint16_t pci_class = 0;  // base and sub class, 0x0302
  PciAccelerator facts;    // except its kind
};

/// A GPU driven by Linux's KFD, the driver of ROCm.
struct KfdGpu {
  std::string name;  // "gfx942"; "" if unknown
  std::optional<int64_t> memory_bytes;
};

/// Returns every function in `root`/sys/bus/pci/devices, by address. Unreadable files are reported in `problems`.
std::vector<PciFunction> read_sysfs_pci(const std::string& root, std::vector<std::string>& problems);

/// Returns the GPUs in `root`/sys/class/kfd/kfd/topology/nodes by PCI address; empty without KFD.
std::map<std::string, KfdGpu> read_kfd_gpus(const std::string& root);

/// "0000:34:00.0".
std::string pci_address(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function);

}  // namespace artifex_devices
