// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/part_ingress.h"

#include <algorithm>
#include <unordered_map>

#include "artifex_planner/reshard/group_ingress.h"

namespace artifex_devices::planner {
namespace {

bool are_whole_slices(const std::vector<int64_t>& devices, const Cluster& cluster) {
  const auto count = static_cast<int64_t>(devices.size());
  if (count % cluster.devices_per_slice() != 0) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (devices[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

/// Ids of the part that has device 0.
std::vector<PositionRange> ranges_of(const Cluster& cluster, ClusterPart part) {
  int64_t stride = cluster.chip().devices_per_chip;
  if (part == ClusterPart::kChip) return {{stride, 1}};
  if (part == ClusterPart::kSlice) return {{cluster.devices_per_slice(), 1}};
  std::vector<PositionRange> ranges{{stride, 1}};
  for (size_t axis = 0; axis < cluster.inside().dims.size(); ++axis) {
    ranges.push_back({cluster.parts().host_shape[axis], stride});
    stride *= cluster.inside().dims[axis];
  }
  return ranges;
}

int64_t part_of(const Cluster& cluster, ClusterPart part, int64_t device) {
  switch (part) {
    case ClusterPart::kChip:
      return device / cluster.chip().devices_per_chip;
    case ClusterPart::kHost:
      return cluster.place_of(device).process;
    case ClusterPart::kSlice:
      return device / cluster.devices_per_slice();
  }
  return 0;
}

}  // namespace

std::vector<int64_t> part_ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_devices,
                                        const ShardDomains& destination,
                                        const std::vector<int64_t>& destination_devices, const Cluster& cluster,
                                        ClusterPart part, int64_t itemsize) {
  if (source_devices == destination_devices && are_whole_slices(source_devices, cluster)) {
    auto bytes = group_ingress_bytes(source, destination, ranges_of(cluster, part), itemsize);
    if (bytes) return *std::move(bytes);
  }
  std::unordered_map<int64_t, int64_t> numbers;
  const auto numbered = [&](const std::vector<int64_t>& devices) {
    std::vector<int64_t> groups;
    groups.reserve(devices.size());
    for (const int64_t device : devices) {
      const int64_t own = part_of(cluster, part, device);
      groups.push_back(numbers.try_emplace(own, static_cast<int64_t>(numbers.size())).first->second);
    }
    return groups;
  };
  const std::vector<int64_t> from = numbered(source_devices);
  const std::vector<int64_t> to = numbered(destination_devices);
  return group_ingress_bytes(source, from, destination, to, static_cast<int64_t>(numbers.size()), itemsize);
}

std::vector<int64_t> part_numbers(const std::vector<int64_t>& source_devices,
                                  const std::vector<int64_t>& destination_devices, const Cluster& cluster,
                                  ClusterPart part) {
  std::vector<int64_t> numbers;
  std::vector<bool> seen;
  for (const std::vector<int64_t>* devices : {&source_devices, &destination_devices}) {
    for (const int64_t device : *devices) {
      const auto own = static_cast<size_t>(part_of(cluster, part, device));
      if (own >= seen.size()) seen.resize(std::max(own + 1, 2 * seen.size()));
      if (!seen[own]) numbers.push_back(static_cast<int64_t>(own));
      seen[own] = true;
    }
  }
  return numbers;
}

}  // namespace artifex_devices::planner
