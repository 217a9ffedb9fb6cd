// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "artifex_planner/cost/transfer_cost.h"
#include "artifex_planner/kind_names.h"

namespace artifex_devices::planner {

/// A collective operation of a group of devices. `bytes` of a cost is always the global array of the group: the
/// gathered result, one device's unreduced input, the sum of all parts of an all-to-all, the value that is broadcast.
enum class CollectiveOp : uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kBroadcast };
template <>
inline constexpr std::array<std::string_view, 5> kKindNames<CollectiveOp>{"all_gather", "reduce_scatter", "all_reduce",
                                                                          "all_to_all", "broadcast"};

/// Seconds before bytes flow: once, and for each step (a hop of a torus, a round behind a switch).
struct CollectiveLatency {
  double once = 0;
  double step = 0;
};

/// The part of one physical axis that a group uses: `size` devices, each `stride` links from the next. The groups in
/// between share the links. `wrap`: the last is linked to the first; axes of one or two devices never wrap.
struct GroupAxis {
  int64_t size = 1;
  bool wrap = false;
  int64_t stride = 1;
};

/// Devices on a torus or mesh: a ring and a line have one axis.
struct TorusGroup {
  std::vector<GroupAxis> axes;
  double link = 0;  // bytes/s of one link in one direction
  CollectiveLatency latency;
};

/// Devices behind switches that never block.
struct SwitchGroup {
  int64_t devices = 1;
  double egress = 0;  // bytes/s out of one device
  CollectiveLatency latency;
  bool adds = false;  // the switches compute sums (NVLink SHARP)
};

/// Each pair of devices has a separate link.
struct FullMeshGroup {
  int64_t devices = 1;
  double link = 0;  // bytes/s of one pair in one direction
  CollectiveLatency latency;
};

using LocalGroup = std::variant<TorusGroup, SwitchGroup, FullMeshGroup>;

/// A group on several nodes (hosts of GPUs, slices of TPUs), each with the same local group, joined by a network that
/// gives each device `egress` in one direction.
struct NodeGroup {
  LocalGroup local;
  int64_t nodes = 1;
  double egress = 0;  // bytes/s for each device
  CollectiveLatency latency;
};

int64_t devices_of(const LocalGroup& group) noexcept;
int64_t devices_of(const NodeGroup& group) noexcept;

/// Bytes that each device receives, by the table of docs/how_to/plan_reshards.md. Example: 34e6 bytes gathered by 4
/// devices: 25.5e6. In a broadcast, the root receives nothing and each other device all bytes.
double received_bytes(CollectiveOp op, double bytes, int64_t devices) noexcept;

/// Every algorithm that the network allows, cheapest first; equals in the order of the guide's table. One device
/// has one entry of 0 s named "none". Bytes flow at the part of the rates that messages of `bytes` reach by
/// `efficiency`; by default at the published rates. Throws InvalidArgument for bytes below 0 or NaN, sizes below 1, and
/// rates that are not above 0. Example: 4 devices on a line with links of 4.5e10 bytes/s gather 33.6e6 bytes in 3
/// x 8.4e6 / 4.5e10 = 560e-6 s.
std::vector<TransferCost> collective_costs(CollectiveOp op, double bytes, const LocalGroup& group,
                                           const Efficiency& efficiency = ideal_efficiency());
std::vector<TransferCost> collective_costs(CollectiveOp op, double bytes, const NodeGroup& group,
                                           const Efficiency& efficiency = ideal_efficiency());

}  // namespace artifex_devices::planner
