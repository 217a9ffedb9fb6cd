// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/cluster/cluster.h"

namespace artifex_devices::planner {

/// Round figures: links of 100 bytes/s and a second a hop, a network of 10 bytes/s a chip and 2 s.
inline ClusterRef made_cluster(NetworkKind kind, const std::vector<int>& dims, const std::vector<bool>& wraps,
                               int64_t slices = 1, int devices_per_chip = 1) {
  ClusterParts parts;
  parts.name = "made";
  parts.chip.name = "chip";
  parts.chip.platform = "tpu";
  parts.chip.device_kind = "chip";
  parts.chip.devices_per_chip = devices_per_chip;
  parts.inside = {.kind = kind,
                  .link_kind = "link",
                  .dims = dims,
                  .wraps = wraps,
                  .bandwidth = SourcedNumber{100, "given"},
                  .latency = SourcedNumber{1, "given"}};
  parts.slices = slices;
  parts.between = {SourcedNumber{10, "given"}, SourcedNumber{2, "given"}};
  parts.host_shape = std::vector<int>(dims.size(), 1);
  parts.host_shape[0] = dims[0] % 2 == 0 ? 2 : 1;
  return Cluster::make(std::move(parts));
}

}  // namespace artifex_devices::planner
