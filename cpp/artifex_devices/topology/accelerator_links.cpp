// SPDX-License-Identifier: Apache-2.0
#include <hwloc.h>

#include <algorithm>
#include <memory>

#include "artifex_devices/topology/accelerators.h"
#include "artifex_devices/topology/loaded_machine.h"
#include "artifex_devices/topology/pci_functions.h"

namespace artifex_devices {
namespace {

constexpr double kMegabyte = 1e6;  // hwloc's bandwidths are MB/s
constexpr double kMostMegabytes = 1e9;

struct ReleaseDistances {
  hwloc_topology_t topology;
  void operator()(hwloc_distances_s* distances) const noexcept { hwloc_distances_release(topology, distances); }
};
using Matrix = std::unique_ptr<hwloc_distances_s, ReleaseDistances>;

Matrix matrix_of(hwloc_topology_t topology, const char* name) {
  hwloc_distances_s* found = nullptr;
  unsigned count = 1;
  if (hwloc_distances_get_by_name(topology, name, &count, &found, 0) != 0 || count == 0) found = nullptr;
  return Matrix(found, ReleaseDistances{topology});
}

/// Returns the PCI device of an object, or null.
hwloc_obj_t pci_device_of(hwloc_obj_t object) {
  if (object != nullptr && object->type == HWLOC_OBJ_OS_DEVICE) object = object->parent;
  return object != nullptr && object->type == HWLOC_OBJ_PCI_DEVICE ? object : nullptr;
}

/// Bytes/s from each accelerator to each other one, and into ports of switches.
struct Rates {
  std::vector<std::vector<double>> between;
  std::vector<double> into_switches;
};

Rates rates_of(const hwloc_distances_s& matrix, const std::vector<std::string>& addresses) {
  const size_t count = addresses.size();
  Rates rates{std::vector<std::vector<double>>(count, std::vector<double>(count, 0)), std::vector<double>(count, 0)};
  std::vector<size_t> numbers(matrix.nbobjs, count);  // `count` means: not an accelerator
  std::vector<bool> is_on_bus(matrix.nbobjs, false);
  for (unsigned i = 0; i < matrix.nbobjs; ++i) {
    const hwloc_obj_t pci = pci_device_of(matrix.objs[i]);
    if (pci == nullptr) continue;  // a processor of POWER
    is_on_bus[i] = true;
    const auto& place = pci->attr->pcidev;
    const std::string address = pci_address(place.domain, place.bus, place.dev, place.func);
    numbers[i] = static_cast<size_t>(std::ranges::find(addresses, address) - addresses.begin());
  }
  for (unsigned i = 0; i < matrix.nbobjs; ++i) {
    if (numbers[i] == count) continue;
    for (unsigned j = 0; j < matrix.nbobjs; ++j) {
      const auto value = static_cast<double>(matrix.values[size_t{i} * matrix.nbobjs + j]);
      if (i == j || !is_on_bus[j] || value > kMostMegabytes) continue;
      if (numbers[j] == count) {
        rates.into_switches[numbers[i]] += value * kMegabyte;
      } else {
        rates.between[numbers[i]][numbers[j]] += value * kMegabyte;
      }
    }
  }
  return rates;
}

std::optional<AcceleratorLinks> joined_by(const Rates& rates, std::string kind) {
  const double egress = *std::ranges::min_element(rates.into_switches);
  if (egress > 0) return AcceleratorLinks{std::move(kind), true, egress};
  double slowest = rates.between[0][1];
  for (size_t i = 0; i < rates.between.size(); ++i) {
    for (size_t j = 0; j < rates.between.size(); ++j) {
      if (i != j) slowest = std::min(slowest, rates.between[i][j]);
    }
  }
  if (slowest > 0) return AcceleratorLinks{std::move(kind), false, slowest};
  return std::nullopt;
}

}  // namespace

std::optional<AcceleratorLinks> accelerator_links(const Machine& machine, const std::vector<std::string>& addresses) {
  const auto* loaded = dynamic_cast<const LoadedMachine*>(&machine);
  if (loaded == nullptr || loaded->topology() == nullptr || addresses.size() < 2) return std::nullopt;
  for (const auto& [name, kind] : {std::pair{"NVLinkBandwidth", "NVLink"}, {"XGMIBandwidth", "xGMI"}}) {
    const Matrix matrix = matrix_of(loaded->topology(), name);
    if (!matrix) continue;
    if (auto links = joined_by(rates_of(*matrix, addresses), kind)) return links;
  }
  return std::nullopt;
}

}  // namespace artifex_devices
