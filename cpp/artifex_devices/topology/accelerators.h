// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

enum class AcceleratorKind : uint8_t { kGpu, kTpu };
std::string_view to_string(AcceleratorKind kind) noexcept;  // "gpu", "tpu"

/// One GPU or TPU on the PCI bus. What is empty or nothing is not known.
struct PciAccelerator {
  AcceleratorKind kind = AcceleratorKind::kGpu;
  std::string pci_address;  // "0000:34:00.0", lower case
  uint16_t vendor_id = 0;
  uint16_t device_id = 0;
  std::string name;  // as a backend of hwloc's calls it, else the PCI database, else pci_accelerator_name
  std::optional<int64_t> memory_bytes;
  std::optional<double> link_bytes_per_s;  // of its PCI link, one way
  std::vector<int> numa_os_indexes;        // of the nodes that it is near to, ascending
  std::vector<std::string> os_devices;     // "cuda0", "nvml0"
  std::vector<std::string> backends;       // "CUDA", "NVML": hwloc's, of these OS devices
  bool is_display_card = false;            // a VGA controller that no table lists and no compute driver runs
  friend bool operator==(const PciAccelerator&, const PciAccelerator&) = default;
};

/// Accelerators in the order of their bus, with the reasons for what could not be read.
struct PciAccelerators {
  std::string source;  // "hwloc" or the path of a folder of sysfs
  std::vector<PciAccelerator> found;
  std::vector<std::string> problems;
};

/// The accelerators of a machine, one for each PCI address. The live machine is loaded once more, with its PCI and OS
/// devices (tens of milliseconds), by hwloc's own means: no vendor's library is called. Where hwloc shows no PCI bus,
/// sysfs is read. A PCI device is
/// - a GPU if one of its OS devices has a `Backend` (CUDA, NVML, RSMI, OpenCL ...); without one if it is a display
///   controller of NVIDIA's, one of AMD's without a screen (classes 0302, 0380, 1200), or one that Linux's KFD runs;
/// - a TPU if it is Google's and its id is one of `pci_accelerator_name`.
PciAccelerators accelerators_of(const Machine& machine);

/// The same from `root`/sys/bus/pci/devices and `root`/sys/class/kfd alone, such as a copy of another machine's files.
PciAccelerators accelerators_in_sysfs(const std::string& root);

/// How the accelerators of one machine are joined by links of their own, NVLink or xGMI.
struct AcceleratorLinks {
  std::string kind;          // "NVLink" or "xGMI"
  bool is_switched = false;  // behind switches; else each pair has a link
  double bandwidth = 0;  // bytes/s one way, of the slowest: out of one accelerator into the switches, or of one pair
};

/// What a machine's file says of the links between the accelerators at these PCI addresses: hwloc's matrices
/// "NVLinkBandwidth" and "XGMIBandwidth". Nothing where it says nothing, where the links do not join all of them, and
/// for fewer than two.
std::optional<AcceleratorLinks> accelerator_links(const Machine& machine, const std::vector<std::string>& addresses);

/// The chip's name by PCI ids, such as "TPU v5e" for 1ae0:0063 and "Tesla V100-SXM2-16GB" for 10de:1db1; "" for ids
/// that are not in the table. Sources: TPUs as JAX knows them (jax/_src/hardware_utils.py), others pci.ids 2023.04.10.
std::string_view pci_accelerator_name(uint16_t vendor_id, uint16_t device_id) noexcept;

}  // namespace artifex_devices
