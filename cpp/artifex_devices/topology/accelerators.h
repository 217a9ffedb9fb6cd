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

/// One GPU or TPU on the PCI bus. Empty strings and absent values mean "not known".
struct PciAccelerator {
  AcceleratorKind kind = AcceleratorKind::kGpu;
  std::string pci_address;  // "0000:34:00.0", lower case
  uint16_t vendor_id = 0;
  uint16_t device_id = 0;
  std::string name;  // from a backend of hwloc, else from the PCI database, else from pci_accelerator_name
  std::optional<int64_t> memory_bytes;
  std::optional<double> link_bytes_per_s;  // bandwidth of its PCI link, one way
  std::vector<int> numa_os_indexes;        // NUMA nodes near it, ascending
  std::vector<std::string> os_devices;     // "cuda0", "nvml0"
  std::vector<std::string> backends;       // "CUDA", "NVML": hwloc backends of these OS devices
  bool is_display_card = false;            // a VGA controller that is in no table and has no compute driver
  friend bool operator==(const PciAccelerator&, const PciAccelerator&) = default;
};

/// Accelerators in bus order, with the reasons why facts could not be read.
struct PciAccelerators {
  std::string source;  // "hwloc" or the path of a folder of sysfs
  std::vector<PciAccelerator> found;
  std::vector<std::string> problems;
};

/// The accelerators of a machine, one for each PCI address. The live machine is loaded again, with its PCI and OS
/// devices (tens of milliseconds); no vendor library is called. If hwloc shows no PCI bus, sysfs is read. A PCI device
/// is
/// - a GPU if one of its OS devices has a `Backend` (CUDA, NVML, RSMI, OpenCL ...), or if it is an NVIDIA display
///   controller, an AMD controller without a screen (classes 0302, 0380, 1200), or a device that Linux's KFD drives;
/// - a TPU if its vendor is Google and `pci_accelerator_name` knows its id.
PciAccelerators accelerators_of(const Machine& machine);

/// The same from `root`/sys/bus/pci/devices and `root`/sys/class/kfd alone, such as a copy of another machine's files.
PciAccelerators accelerators_in_sysfs(const std::string& root);

/// The direct links between the accelerators of one machine: NVLink or xGMI.
struct AcceleratorLinks {
  std::string kind;          // "NVLink" or "xGMI"
  bool is_switched = false;  // connected by switches; otherwise each pair has a link
  double bandwidth = 0;      // bytes/s one way of the slowest: accelerator to switches, or one pair
};

/// Returns the links between the accelerators at these PCI addresses, from hwloc's matrices "NVLinkBandwidth" and
/// "XGMIBandwidth". Returns nothing if there is no matrix, if the links do not connect all of them, and for fewer than
/// two accelerators.
std::optional<AcceleratorLinks> accelerator_links(const Machine& machine, const std::vector<std::string>& addresses);

/// Returns the chip's name for PCI ids, such as "TPU v5e" for 1ae0:0063 and "Tesla V100-SXM2-16GB" for 10de:1db1; ""
/// for ids that are not in the table. Sources: jax/_src/hardware_utils.py for TPUs, pci.ids 2026.08.22 for other chips.
std::string_view pci_accelerator_name(uint16_t vendor_id, uint16_t device_id) noexcept;

}  // namespace artifex_devices
