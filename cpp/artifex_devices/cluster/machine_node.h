// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// One accelerator of a machine.
struct MachineChip {
  std::string catalogue_name;  // "" if the catalogue does not have it
  std::string name;            // "" if not known
  std::string platform;        // "gpu" or "tpu"
  std::optional<int64_t> memory_bytes;
  std::optional<double> link_bytes_per_s;  // of its PCI Express link, one way
  std::string pci_address;                 // "" if not known
};

/// Note of a node whose GPUs have no links that join all of them.
inline constexpr std::string_view kJoinedByPci =
    "GPUs are taken to be joined by PCI Express: the file has no NVLink or xGMI links that join all of them";

/// A node of the CPU domains of `machine`: each a chip with the smallest memory of any domain. `source` is the source
/// of its numbers.
ClusterParts cpu_node(const Machine& machine, const std::string& source);

/// A node of the accelerators of `machine`, at least one. Chips of the catalogue have the catalogue's numbers, and its
/// links if there are as many as one domain has. Others are joined by the NVLink or xGMI links that the machine's file
/// has or, if these do not join all of them, by PCI Express. Throws InvalidArgument for several kinds of accelerators.
ClusterParts accelerator_node(const std::vector<MachineChip>& chips, const Machine& machine, const std::string& source);

}  // namespace artifex_devices
