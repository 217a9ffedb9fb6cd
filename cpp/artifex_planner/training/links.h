// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/collectives.h"
#include "artifex_planner/cost/efficiency.h"

namespace artifex_devices::planner {

/// The experts of a token: `copies` drawn at random from `chosen` of `groups` groups, which are drawn at random too.
struct TokenRoutes {
  double copies = 1;
  int64_t groups = 1;
  int64_t chosen = 1;
  /// Nodes among `nodes` that have one of them, on average. Experts are spread over the nodes in their order.
  /// Example: 8 copies reach 8 (1 - (7/8)^8) = 5.25 of 8 nodes; in 4 of 8 groups 4 (1 - (3/4)^8) = 3.6.
  double nodes_reached(int64_t nodes) const noexcept;
};

/// Whether InfiniBand may join the nodes of a cluster: not slices of TPUs.
inline bool may_have_sharp(const Cluster& cluster) { return cluster.inside().kind != NetworkKind::kTorus; }

/// Messages that a profile can tell apart by their names.
enum class MessageKind : uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kSend };
inline constexpr int kMessageCount = 5;

/// Groups of a cluster's devices whose ids are evenly spaced, with the links under them. Groups are computed at first
/// use. Not thread-safe.
class TrainingLinks {
 public:
  explicit TrainingLinks(const Cluster& cluster);

  /// From now on messages of other kinds take no time. The sums of a step are then sums of one kind.
  void count_only(MessageKind kind) noexcept { only_ = kind; }

  /// The group of `devices` ids 0, stride, 2 x stride and so on; nullptr where these are not a box of the cluster.
  const NodeGroup* group(int64_t devices, int64_t stride);
  /// Whether the devices of the group are in one slice.
  bool is_inside(int64_t devices, int64_t stride);

  /// Seconds of the cheapest algorithm, sums in the switch of a node among them and, with `sharp`, sums in the switches
  /// between nodes; `bytes` of the global array, as in collective_costs. Throws InvalidArgument where the group is not
  /// a box. With `is_dispatch` links and network reach Factor::kDispatch.
  double seconds(CollectiveOp op, double bytes, int64_t devices, int64_t stride, const Efficiency& efficiency,
                 bool sharp = false, bool is_dispatch = false);
  /// Seconds in which each device sends tokens to their experts, `bytes` of them with a copy for each of the `copies`
  /// experts of a token. Each token is sent to a node once, and copied over the links inside the node at
  /// the same time (DeepSeek-V3, arXiv:2412.19437, section 3.2.2), or all copies are sent separately if that is faster.
  double expert_seconds(double bytes, const TokenRoutes& routes, int64_t devices, int64_t stride,
                        const Efficiency& efficiency);
  /// Seconds of one message from each device to the one `stride` ids on.
  double send_seconds(double bytes, int64_t stride, const Efficiency& efficiency);

 private:
  const NodeGroup& placed(int64_t devices, int64_t stride);
  bool counts(MessageKind kind) const noexcept { return !only_ || *only_ == kind; }
  const Cluster& cluster_;
  std::optional<MessageKind> only_;
  std::map<std::pair<int64_t, int64_t>, std::optional<NodeGroup>> groups_;
};

}  // namespace artifex_devices::planner
