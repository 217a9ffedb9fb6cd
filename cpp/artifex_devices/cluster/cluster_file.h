// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/cluster/cluster.h"

namespace artifex_devices {

/// Values of the tables of a cluster file; nothing for missing keys. Rates are bytes/s one way.
struct ClusterFile {
  struct Chip {
    std::optional<std::string> name, platform, device_kind;
    std::optional<int> devices_per_chip;
    std::map<std::string, double> peak_flops;  // FLOP/s by format
    std::optional<double> memory_bytes, memory_bandwidth;
  };
  struct Slice {
    std::optional<std::string> kind, link_kind;
    std::optional<int> chips;
    std::optional<std::vector<int>> dims;
    std::optional<std::vector<bool>> wraps;
    std::optional<double> bandwidth, latency;
  };
  struct Host {
    std::optional<int> chips, nics;
    std::optional<std::vector<int>> shape;
    std::optional<double> bandwidth, nic_bandwidth, memory_bytes;
  };
  std::optional<std::string> name;
  std::optional<int64_t> slices;
  Chip chip;
  Slice slice;
  Host host;
  std::optional<double> network_bandwidth, network_latency;
};

/// The parts of the cluster that a file describes, with `source` as the source of its numbers; a chip of the catalogue
/// has the catalogue's values for missing keys. Throws InvalidArgument for tables that contradict each other or the
/// catalogue; Cluster::make checks the values.
ClusterParts cluster_parts(const ClusterFile& file, const std::string& source);

NetworkKind network_kind_from_name(std::string_view name);    // throws InvalidArgument
MatmulFormat peak_format_from_name(const std::string& name);  // throws InvalidArgument

}  // namespace artifex_devices
