// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/accelerators.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "artifex_devices/topology/loaded_machine.h"
#include "artifex_devices/topology/pci_functions.h"

namespace artifex_devices {
namespace {

constexpr uint16_t kGoogle = 0x1ae0, kNvidia = 0x10de, kAmd = 0x1002;

struct PciName {
  uint16_t vendor_id, device_id;
  std::string_view name;
};

// v2 and v3 share one id; 0056 has no public name.
constexpr std::array kNames = {
    PciName{kGoogle, 0x0027, "TPU v2 or v3"},
    PciName{kGoogle, 0x0056, "TPU 0056"},
    PciName{kGoogle, 0x005e, "TPU v4"},
    PciName{kGoogle, 0x0062, "TPU v5p"},
    PciName{kGoogle, 0x0063, "TPU v5e"},
    PciName{kGoogle, 0x006f, "TPU v6e"},
    PciName{kGoogle, 0x0076, "TPU7x"},
    PciName{kGoogle, 0x007c, "TPU8t"},
    PciName{kGoogle, 0x0083, "TPU8i"},
    PciName{kNvidia, 0x15f8, "Tesla P100-PCIE-16GB"},
    PciName{kNvidia, 0x15f9, "Tesla P100-SXM2-16GB"},
    PciName{kNvidia, 0x1db1, "Tesla V100-SXM2-16GB"},
    PciName{kNvidia, 0x1db4, "Tesla V100-PCIE-16GB"},
    PciName{kNvidia, 0x1db5, "Tesla V100-SXM2-32GB"},
    PciName{kNvidia, 0x1db6, "Tesla V100-PCIE-32GB"},
    PciName{kNvidia, 0x1db8, "Tesla V100-SXM3-32GB"},
    PciName{kNvidia, 0x1eb8, "Tesla T4"},
    PciName{kNvidia, 0x20b0, "NVIDIA A100-SXM4-40GB"},
    PciName{kNvidia, 0x20b2, "NVIDIA A100-SXM4-80GB"},
    PciName{kNvidia, 0x20b5, "NVIDIA A100 80GB PCIe"},
    PciName{kNvidia, 0x20bd, "NVIDIA A800-SXM4-40GB"},
    PciName{kNvidia, 0x20f1, "NVIDIA A100-PCIE-40GB"},
    PciName{kNvidia, 0x20f3, "NVIDIA A800-SXM4-80GB"},
    PciName{kNvidia, 0x20f5, "NVIDIA A800 80GB PCIe"},
    PciName{kNvidia, 0x2322, "NVIDIA H800 PCIe"},
    PciName{kNvidia, 0x2324, "NVIDIA H800"},
    PciName{kNvidia, 0x2330, "NVIDIA H100 80GB HBM3"},
    PciName{kNvidia, 0x2331, "NVIDIA H100 PCIe"},
    PciName{kNvidia, 0x2335, "NVIDIA H200"},
    PciName{kNvidia, 0x2901, "NVIDIA B200"},
    PciName{kNvidia, 0x2941, "NVIDIA GB200"},
    PciName{kAmd, 0x66a1, "AMD Instinct MI50"},
    PciName{kAmd, 0x738c, "AMD Instinct MI100"},
    PciName{kAmd, 0x738e, "AMD Instinct MI100"},
    PciName{kAmd, 0x740c, "AMD Instinct MI250X"},
    PciName{kAmd, 0x740f, "AMD Instinct MI210"},
    PciName{kAmd, 0x7408, "AMD Instinct MI250X"},
    PciName{kAmd, 0x74a1, "AMD Instinct MI300X"},
};

// hwloc's keys for the total memory of a GPU, in KiB; the vendor's own library comes first.
constexpr std::array kMemoryKeys = {"CUDAGlobalMemorySize", "RSMIVRAMSize", "LevelZeroHBMSize",
                                    "OpenCLGlobalMemorySize"};

std::optional<AcceleratorKind> kind_of(const PciFunction& function, const std::map<std::string, KfdGpu>& kfd) {
  const PciAccelerator& facts = function.facts;
  if (facts.vendor_id == kGoogle) {
    if (pci_accelerator_name(facts.vendor_id, facts.device_id).empty()) return std::nullopt;
    return AcceleratorKind::kTpu;
  }
  const bool is_display = function.pci_class >> 8 == 0x03;
  const bool is_screenless =
      function.pci_class == 0x0302 || function.pci_class == 0x0380 || function.pci_class == 0x1200;
  if (!facts.backends.empty() || (facts.vendor_id == kNvidia && is_display) ||
      (facts.vendor_id == kAmd && (is_screenless || kfd.contains(facts.pci_address)))) {
    return AcceleratorKind::kGpu;
  }
  return std::nullopt;
}

/// Returns whether it is a VGA controller that is in no table and has no compute driver.
bool is_display_card(const PciFunction& function, const std::map<std::string, KfdGpu>& kfd) {
  constexpr std::array<std::string_view, 3> kComputing = {"CUDA", "NVML", "RSMI"};
  const PciAccelerator& facts = function.facts;
  return function.pci_class == 0x0300 && pci_accelerator_name(facts.vendor_id, facts.device_id).empty() &&
         !kfd.contains(facts.pci_address) && std::ranges::none_of(facts.backends, [&](const std::string& backend) {
           return std::ranges::find(kComputing, backend) != kComputing.end();
         });
}

PciAccelerators accelerators_among(std::vector<PciFunction> functions, const std::map<std::string, KfdGpu>& kfd) {
  PciAccelerators result;
  std::set<std::string> seen;
  for (PciFunction& function : functions) {
    const auto kind = kind_of(function, kfd);
    PciAccelerator& facts = function.facts;
    if (!kind || !seen.insert(facts.pci_address).second) continue;
    facts.kind = *kind;
    facts.is_display_card = is_display_card(function, kfd);
    const auto run = kfd.find(facts.pci_address);
    if (facts.vendor_id == kAmd && run != kfd.end()) {
      if (!facts.memory_bytes) facts.memory_bytes = run->second.memory_bytes;
      if (facts.name.empty()) facts.name = pci_accelerator_name(facts.vendor_id, facts.device_id);
      if (facts.name.empty()) facts.name = run->second.name;
    }
    if (facts.name.empty()) facts.name = pci_accelerator_name(facts.vendor_id, facts.device_id);
    result.found.push_back(std::move(facts));
  }
  return result;
}

std::string info_of(hwloc_obj_t object, const char* key) {
  const char* value = hwloc_obj_get_info_by_name(object, key);
  return value ? value : "";
}

std::optional<int64_t> memory_of(hwloc_obj_t device, const char* key) {
  const std::string text = info_of(device, key);
  int64_t kib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kib);
  if (error != std::errc{} || end != text.data() + text.size() || kib <= 0 || kib > int64_t{1} << 50) {
    return std::nullopt;
  }
  return kib * 1024;
}

// Reads the attributes of a PCI device from its OS devices.
void read_os_devices(hwloc_obj_t pci, PciAccelerator& facts) {
  std::string model;
  for (hwloc_obj_t device = pci->io_first_child; device; device = device->next_sibling) {
    if (device->type != HWLOC_OBJ_OS_DEVICE) continue;
    const std::string backend = info_of(device, "Backend");
    const auto kind = device->attr->osdev.type;
    if (backend.empty() && kind != HWLOC_OBJ_OSDEV_GPU && kind != HWLOC_OBJ_OSDEV_COPROC) continue;
    if (device->name) facts.os_devices.emplace_back(device->name);
    if (model.empty()) model = info_of(device, "GPUModel");
    if (!backend.empty() && std::ranges::find(facts.backends, backend) == facts.backends.end()) {
      facts.backends.push_back(backend);
    }
  }
  for (const char* key : kMemoryKeys) {
    for (hwloc_obj_t device = pci->io_first_child; device && !facts.memory_bytes; device = device->next_sibling) {
      if (device->type == HWLOC_OBJ_OS_DEVICE) facts.memory_bytes = memory_of(device, key);
    }
  }
  facts.name = !model.empty() ? model : info_of(pci, "PCIDevice");
}

std::vector<PciFunction> read_hwloc_pci(hwloc_topology_t topology) {
  std::vector<PciFunction> found;
  for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(topology, pci));) {
    const auto& attributes = pci->attr->pcidev;
    PciFunction function;
    function.pci_class = attributes.class_id;
    PciAccelerator& facts = function.facts;
    facts.pci_address = pci_address(attributes.domain, attributes.bus, attributes.dev, attributes.func);
    facts.vendor_id = attributes.vendor_id;
    facts.device_id = attributes.device_id;
    if (attributes.linkspeed > 0 && attributes.linkspeed < 1e6F) {
      facts.link_bytes_per_s = static_cast<double>(attributes.linkspeed) * 1e9;
    }
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, pci);
    if (near && near->nodeset && hwloc_bitmap_weight(near->nodeset) > 0) {
      for (int node = hwloc_bitmap_first(near->nodeset); node >= 0; node = hwloc_bitmap_next(near->nodeset, node)) {
        const hwloc_obj* const memory = hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(node));
        if (memory == nullptr || !is_gpu_memory(memory)) facts.numa_os_indexes.push_back(node);
      }
    }
    read_os_devices(pci, facts);
    found.push_back(std::move(function));
  }
  return found;
}

}  // namespace

std::string_view to_string(AcceleratorKind kind) noexcept { return kind == AcceleratorKind::kTpu ? "tpu" : "gpu"; }

std::string_view pci_accelerator_name(uint16_t vendor_id, uint16_t device_id) noexcept {
  for (const PciName& row : kNames) {
    if (row.vendor_id == vendor_id && row.device_id == device_id) return row.name;
  }
  return "";
}

PciAccelerators accelerators_in_sysfs(const std::string& root) {
  std::vector<std::string> problems;
  const std::vector<PciFunction> functions = read_sysfs_pci(root, problems);
  PciAccelerators result = accelerators_among(functions, read_kfd_gpus(root));
  result.source = root + "/sys/bus/pci/devices";
  result.problems = std::move(problems);
  return result;
}

PciAccelerators accelerators_of(const Machine& machine) {
  if (!machine.is_live()) {
    const auto* loaded = dynamic_cast<const LoadedMachine*>(&machine);
    PciAccelerators result;
    if (loaded && loaded->topology()) result = accelerators_among(read_hwloc_pci(loaded->topology()), {});
    result.source = "hwloc";
    return result;
  }
  const LiveIoTopology live;
  if (live.topology() && hwloc_get_nbobjs_by_type(live.topology(), HWLOC_OBJ_PCI_DEVICE) > 0) {
    PciAccelerators result = accelerators_among(read_hwloc_pci(live.topology()), read_kfd_gpus(""));
    result.source = "hwloc";
    return result;
  }
  return accelerators_in_sysfs("");
}

}  // namespace artifex_devices
