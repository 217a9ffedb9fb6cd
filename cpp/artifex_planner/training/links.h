// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/cost/collectives.h"
#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/fields.h"
#include "artifex_planner/kind_names.h"

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
template <>
inline constexpr std::array<std::string_view, 5> kKindNames<MessageKind>{"all_gather", "reduce_scatter", "all_reduce",
                                                                         "all_to_all", "send"};

/// A message that was priced, in a group of `devices` ids: 0, stride, 2 x stride and so on.
struct TrainingMessage {
  MessageKind kind = MessageKind::kAllGather;
  int64_t devices = 1;
  int64_t stride = 1;
  double bytes = 0;    // that a ring sends from each device, each time
  double count = 0;    // how often
  double seconds = 0;  // of all times together, hidden or not
};
void visit_fields(FieldsOf<TrainingMessage> auto& message, const auto& visit) {
  visit("op", message.kind);
  visit("devices", message.devices);
  visit("stride", message.stride);
  visit("bytes_sent", Amount{message.bytes});
  visit("count", Amount{message.count});
  visit("seconds", message.seconds);
}
/// Adds messages `times` times to a sum, in which equal messages are one.
void add_messages(std::vector<TrainingMessage>& sum, const std::vector<TrainingMessage>& messages, double times);

/// Groups of a cluster's devices whose ids are evenly spaced, with the links under them. Groups are computed at first
/// use. Not thread-safe.
class TrainingLinks {
 public:
  explicit TrainingLinks(const Cluster& cluster);

  /// From now on messages of other kinds take no time. The sums of a step are then sums of one kind.
  void count_only(MessageKind kind) noexcept { only_ = kind; }
  /// From now on messages that are priced are also listed, each until it is taken.
  void list_messages() noexcept { lists_ = true; }
  std::vector<TrainingMessage> take_messages() noexcept { return std::exchange(listed_, {}); }

  /// The group of `devices` ids 0, stride, 2 x stride and so on; nullptr where these are not a box of the cluster.
  const NodeGroup* group(int64_t devices, int64_t stride);
  /// Whether the devices of the group are in one slice.
  bool is_inside(int64_t devices, int64_t stride);

  /// Seconds of `times` runs with the cheapest algorithm, sums in the switch of a node among them and, with `sharp`,
  /// sums in the switches between nodes; `bytes` of the global array, as in collective_costs. Throws InvalidArgument
  /// where the group is not a box.
  double seconds(CollectiveOp op, double bytes, int64_t devices, int64_t stride, const Efficiency& efficiency,
                 double times = 1, bool sharp = false);
  /// Seconds in which each device sends tokens to their experts `times` times, `bytes` of them with a copy for each of
  /// the `copies` experts of a token. Each token is sent to a node once, and copied over the links inside the node at
  /// the same time (DeepSeek-V3, arXiv:2412.19437, section 3.2.2), or all copies are sent separately if that is faster.
  double expert_seconds(double bytes, const TokenRoutes& routes, int64_t devices, int64_t stride,
                        const Efficiency& efficiency, double times = 1);
  /// Seconds of `times` messages from each device of a group to the next one, `stride` ids on.
  double send_seconds(double bytes, int64_t devices, int64_t stride, const Efficiency& efficiency, double times = 1);

 private:
  const NodeGroup& placed(int64_t devices, int64_t stride);
  /// Seconds of one run; with `is_dispatch` links and network reach Factor::kDispatch.
  double once(CollectiveOp op, double bytes, int64_t devices, int64_t stride, const Efficiency& efficiency, bool sharp,
              bool is_dispatch);
  double send_once(double bytes, const NodeGroup& pair, const Efficiency& efficiency) const;
  /// Returns times x seconds, after listing the message.
  double listed(MessageKind kind, double sent, int64_t devices, int64_t stride, double seconds, double times);
  bool counts(MessageKind kind) const noexcept { return !only_ || *only_ == kind; }
  const Cluster& cluster_;
  std::optional<MessageKind> only_;
  bool lists_ = false;
  std::vector<TrainingMessage> listed_;
  std::map<std::pair<int64_t, int64_t>, std::optional<NodeGroup>> groups_;
};

}  // namespace artifex_devices::planner
