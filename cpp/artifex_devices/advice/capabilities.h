// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/advice/hardware_type.h"
#include "artifex_devices/topology/accelerators.h"
#include "artifex_devices/topology/nvml.h"

namespace artifex_devices {

/// One accelerator with all that is known of it: what the PCI bus says, and what its driver says.
struct FoundAccelerator {
  PciAccelerator facts;  // name and memory are the driver's where it knows them; no address: not on the bus seen here
  HardwareType hardware_type = HardwareType::kUnknown;
  std::string catalogue_name;  // of its row in the catalogue of accelerators; "" without one
  std::optional<int> nvml_index;
  std::optional<ComputeCapability> compute_capability;
  std::vector<NvLink> links;
  std::vector<std::string> sources;   // "hwloc", "libnvidia-ml.so.1"
  std::vector<std::string> problems;  // why something is not known
};

/// What accelerators there are. They need not be devices of the runtime.
struct Capabilities {
  std::vector<FoundAccelerator> accelerators;  // in the order of the bus, then those that only the driver knows
  std::string driver_version;                  // NVIDIA's; "" not known
  std::string cuda_version;                    // the newest that the driver supports
  std::vector<std::string> problems;  // why something is not known, each beginning with where it was looked for
};

/// Where to look.
struct CapabilitySources {
  std::shared_ptr<const Machine> machine = nullptr;        // null: `sysfs_root` instead
  std::string sysfs_root = "";                             // "" is this machine's; only without `machine`
  std::optional<std::string> nvml_library = std::nullopt;  // as read_nvml takes it; nothing: NVML is not asked
};

/// Looks anew; nothing is remembered. GPUs of the bus and of NVML are one where their PCI address is. Throws
/// InvalidArgument for a library that read_nvml refuses.
Capabilities find_capabilities(const CapabilitySources& sources);

}  // namespace artifex_devices
