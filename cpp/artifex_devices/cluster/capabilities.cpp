// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/capabilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artifex_devices/cluster/accelerator_catalogue.h"

namespace artifex_devices {
namespace {

constexpr uint16_t kAmd = 0x1002;

HardwareType type_of(const PciAccelerator& facts) {
  if (facts.kind == AcceleratorKind::kTpu) return detect_hardware_type("tpu", facts.name);
  return detect_hardware_type(facts.vendor_id == kAmd ? "rocm" : "cuda", facts.name);
}

// Looks up the name first, then the PCI ids.
std::string catalogue_name_of(const PciAccelerator& facts) {
  const Accelerator* row = find_accelerator_by_kind(facts.name);
  if (!row) row = find_accelerator_by_pci(fmt::format("{:04x}:{:04x}", facts.vendor_id, facts.device_id));
  return std::string(row ? row->name : "");
}

void add_nvml_gpu(NvmlGpu gpu, const std::string& library, std::vector<FoundAccelerator>& accelerators) {
  const auto is_same = [&](const FoundAccelerator& each) {
    return !gpu.pci_address.empty() && each.facts.pci_address == gpu.pci_address;
  };
  auto place = std::ranges::find_if(accelerators, is_same);
  if (place == accelerators.end() || place->nvml_index) {  // not on the bus, or a duplicate address
    FoundAccelerator only;
    only.facts.pci_address = gpu.pci_address;
    only.facts.vendor_id = gpu.vendor_id;
    only.facts.device_id = gpu.device_id;
    if (!gpu.pci_address.empty()) {
      only.problems.push_back(
          fmt::format("{} is not among the PCI devices: its NUMA node is not known", gpu.pci_address));
    }
    place = accelerators.insert(accelerators.end(), std::move(only));
  }
  place->nvml_index = gpu.index;
  if (!gpu.name.empty()) place->facts.name = std::move(gpu.name);
  if (gpu.memory_bytes) place->facts.memory_bytes = gpu.memory_bytes;
  place->compute_capability = gpu.compute_capability;
  place->links = std::move(gpu.links);
  place->sources.push_back(library);
  std::ranges::move(gpu.problems, std::back_inserter(place->problems));
}

}  // namespace

Capabilities find_capabilities(const CapabilitySources& sources) {
  NvmlReport nvml;
  if (sources.nvml_library) nvml = read_nvml(*sources.nvml_library);
  PciAccelerators bus = sources.machine ? accelerators_of(*sources.machine) : accelerators_in_sysfs(sources.sysfs_root);

  Capabilities result;
  for (const std::string& problem : bus.problems) result.problems.push_back(fmt::format("{}: {}", bus.source, problem));
  for (const std::string& problem : nvml.problems) {
    result.problems.push_back(fmt::format("{}: {}", nvml.library, problem));
  }
  result.driver_version = nvml.driver_version;
  result.cuda_version = nvml.cuda_version;
  for (PciAccelerator& facts : bus.found) {
    FoundAccelerator accelerator;
    accelerator.facts = std::move(facts);
    accelerator.sources.push_back(bus.source);
    result.accelerators.push_back(std::move(accelerator));
  }
  for (NvmlGpu& gpu : nvml.gpus) add_nvml_gpu(std::move(gpu), nvml.library, result.accelerators);
  for (FoundAccelerator& accelerator : result.accelerators) {
    accelerator.hardware_type = type_of(accelerator.facts);
    accelerator.catalogue_name = catalogue_name_of(accelerator.facts);
  }
  return result;
}

}  // namespace artifex_devices
