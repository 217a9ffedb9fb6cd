// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/cluster/hardware_type.h"
#include "artifex_devices/topology/accelerators.h"
#include "artifex_devices/topology/nvml.h"

namespace artifex_devices {

/// One accelerator with the facts from the PCI bus and from its driver.
struct FoundAccelerator {
  PciAccelerator facts;  // name and memory are the driver's if known; no address: not on the visible bus
  HardwareType hardware_type = HardwareType::kUnknown;
  std::string catalogue_name;  // name in the catalogue of accelerators, or ""
  std::optional<int> nvml_index;
  std::optional<ComputeCapability> compute_capability;
  std::vector<NvLink> links;
  std::vector<std::string> sources;   // "hwloc", "libnvidia-ml.so.1"
  std::vector<std::string> problems;  // why facts are missing
};

/// The accelerators of a machine. They need not be devices of the runtime.
struct Capabilities {
  std::vector<FoundAccelerator> accelerators;  // in bus order, then those known only to the driver
  std::string driver_version;                  // NVIDIA's; "" if unknown
  std::string cuda_version;                    // newest version that the driver supports
  std::vector<std::string> problems;           // why facts are missing, each beginning with its source
};

/// Sources of find_capabilities.
struct CapabilitySources {
  std::shared_ptr<const Machine> machine = nullptr;        // null: `sysfs_root` instead
  std::string sysfs_root = "";                             // "" is this machine's; used only without `machine`
  std::optional<std::string> nvml_library = std::nullopt;  // argument of read_nvml; nothing: NVML is not queried
};

/// Searches at each call; nothing is cached. GPUs on the bus and in NVML with equal PCI addresses are one accelerator.
/// Throws like read_nvml.
Capabilities find_capabilities(const CapabilitySources& sources);

}  // namespace artifex_devices
