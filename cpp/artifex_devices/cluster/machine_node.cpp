// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/machine_node.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/topology/accelerators.h"

namespace artifex_devices {
namespace {

constexpr int kChipsOfDgx2 = 16;

/// A node of chips about which nothing else is known.
ClusterParts unknown_node(const std::string& chip, const std::string& platform, const std::string& device_kind,
                          size_t chips, const std::string& source) {
  ClusterParts parts;
  parts.chip.name = chip;
  parts.chip.platform = platform;
  parts.chip.device_kind = device_kind;
  parts.inside.dims = parts.host_shape = {static_cast<int>(chips)};
  parts.host_source = source;
  return parts;
}

/// Chips that the catalogue's links join.
std::optional<int> domain_chips(const Accelerator& row) {
  return row.name.find("V100 SXM2/SXM3") != std::string_view::npos ? kChipsOfDgx2 : row.links.domain_chips;
}

/// The slowest PCI Express link; nothing unless all links are known.
std::optional<double> slowest_link(const std::vector<MachineChip>& chips) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const MachineChip& each : chips) {
    if (!each.link_bytes_per_s) return std::nullopt;
    slowest = std::min(slowest, *each.link_bytes_per_s);
  }
  return slowest;
}

std::optional<SourcedNumber> memory_of(const Machine& machine, const std::string& source) {
  const int64_t bytes = machine.host_memory_bytes();
  return bytes > 0 ? std::optional(SourcedNumber{static_cast<double>(bytes), source}) : std::nullopt;
}

void check_one_kind(const std::vector<MachineChip>& chips) {
  std::set<std::string> kinds;
  for (const MachineChip& each : chips) {
    kinds.insert(!each.catalogue_name.empty() ? each.catalogue_name : each.name.empty() ? "unknown" : each.name);
  }
  if (kinds.size() > 1) {
    throw_error(
        "cluster.from_xml: the machine has accelerators of several kinds, {}; expected one kind; describe the one to "
        "plan for in a TOML file",
        fmt::join(kinds, ", "));
  }
}

}  // namespace

ClusterParts cpu_node(const Machine& machine, const std::string& source) {
  const std::vector<CpuDomain>& domains = machine.cpu_domains();
  ClusterParts parts = unknown_node("CPU domain", "cpu", "cpu", domains.size(), source);
  parts.inside.link_kind = "memory";
  // The chips of a cluster are alike: the smallest memory stands for all.
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const CpuDomain& domain : domains) {
    const auto node = std::ranges::find(machine.numa_nodes(), domain.default_node, &NumaNode::logical_index);
    smallest = std::min(smallest, node == machine.numa_nodes().end() ? 0 : node->memory_bytes);
  }
  if (smallest > 0) parts.chip.memory_bytes = SourcedNumber{static_cast<double>(smallest), source};
  return parts;
}

ClusterParts accelerator_node(const std::vector<MachineChip>& chips, const Machine& machine,
                              const std::string& source) {
  check_one_kind(chips);
  const MachineChip& first = chips.front();
  const Accelerator* row = first.catalogue_name.empty() ? nullptr : find_accelerator_by_name(first.catalogue_name);
  const auto count = static_cast<int>(chips.size());
  ClusterParts parts;
  if (row != nullptr) {
    if (domain_chips(*row) == count) {
      parts = gpu_cluster(row->name, 1, {})->parts();
      parts.host_source = source;
      parts.host_memory = memory_of(machine, source);
      return parts;
    }
    // The rates of the chip are the catalogue's; the rates of its links are not.
    parts = gpu_cluster(row->name, 1, {.chips_per_node = count})->parts();
    parts.inside = {};
    parts.inside.dims = parts.host_shape = {count};
  } else {
    const std::string name = first.name.empty() ? "unknown" : first.name;
    parts = unknown_node(name, first.platform, name, chips.size(), source);
    const auto memory = [](const MachineChip& each) { return each.memory_bytes.value_or(0); };
    const int64_t smallest = memory(*std::ranges::min_element(chips, {}, memory));
    if (smallest > 0) parts.chip.memory_bytes = SourcedNumber{static_cast<double>(smallest), source};
  }
  parts.inside.link_kind = "PCI Express";
  parts.host_source = source;
  parts.host_memory = memory_of(machine, source);
  std::vector<std::string> addresses;
  for (const MachineChip& each : chips) addresses.push_back(each.pci_address);
  const std::optional<AcceleratorLinks> links = accelerator_links(machine, addresses);
  if (const std::optional<double> slowest = slowest_link(chips)) {
    parts.inside.bandwidth = parts.chip.host_bandwidth = SourcedNumber{*slowest, source};
    if (!links) parts.notes.emplace_back(kJoinedByPci);
  }
  if (links) {
    parts.inside.link_kind = links->kind;
    parts.inside.kind = links->is_switched ? NetworkKind::kSwitch : NetworkKind::kFullMesh;
    parts.inside.bandwidth = SourcedNumber{links->bandwidth, source};
  }
  return parts;
}

}  // namespace artifex_devices
