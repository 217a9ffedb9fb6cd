// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/cost/groups.h"

namespace artifex_devices::planner {
namespace {

// Seconds; the model of NVIDIA/nccl, src/graph/tuning.cc, in its later versions.
constexpr double kSharpLatency = 31e-6;  // CollNetDirect

MessageKind message_of(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kReduceScatter:
      return MessageKind::kReduceScatter;
    case CollectiveOp::kAllReduce:
      return MessageKind::kAllReduce;
    case CollectiveOp::kAllToAll:
      return MessageKind::kAllToAll;
    case CollectiveOp::kAllGather:
    case CollectiveOp::kBroadcast:
      break;
  }
  return MessageKind::kAllGather;
}

/// An all-reduce whose sums the switches between nodes compute (SHARP): a reduce-scatter inside the nodes, then each
/// device sends its part once and receives the sum, then an all-gather inside, pipelined over parts of the array. A NIC
/// sends bytes / g, where a ring over m nodes sends 2 (m - 1) / m of that.
double sharp_seconds(double bytes, const NodeGroup& group, const Efficiency& efficiency) {
  double inside = 0;
  double latency = kSharpLatency;
  const auto g = static_cast<double>(devices_of(group.local));
  if (g > 1) {
    const double rate =
        message_efficiency(bytes, efficiency[Factor::kLinkFraction], efficiency[Factor::kLinksHalfBytes]);
    for (const CollectiveOp op : {CollectiveOp::kReduceScatter, CollectiveOp::kAllGather}) {
      const TransferCost local = collective_costs(op, bytes, group.local).front();
      inside += local.transfer / rate;
      latency += local.latency;
    }
  }
  const double between = bytes / (g * group.egress) /
                         message_efficiency(bytes, efficiency[Factor::kSharp], efficiency[Factor::kNetworkHalfBytes]);
  return latency + std::max(inside, between);
}

}  // namespace

void add_messages(std::vector<TrainingMessage>& sum, const std::vector<TrainingMessage>& messages, double times) {
  if (times <= 0) return;
  for (const TrainingMessage& each : messages) {
    const auto same = std::ranges::find_if(sum, [&](const TrainingMessage& other) {
      return other.kind == each.kind && other.devices == each.devices && other.stride == each.stride &&
             other.bytes == each.bytes;
    });
    TrainingMessage& added =
        same != sum.end() ? *same : sum.emplace_back(TrainingMessage{each.kind, each.devices, each.stride, each.bytes});
    added.count += times * each.count;
    added.seconds += times * each.seconds;
  }
}

TrainingLinks::TrainingLinks(const Cluster& cluster) : cluster_(cluster) {}

const NodeGroup* TrainingLinks::group(int64_t devices, int64_t stride) {
  const auto [found, is_new] = groups_.try_emplace({devices, stride});
  if (is_new && (devices - 1) * stride < cluster_.device_count()) {
    std::vector<int64_t> ids(static_cast<size_t>(devices));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i) * stride;
    found->second = placed_group(cluster_, ids);
  }
  return found->second ? &*found->second : nullptr;
}

bool TrainingLinks::is_inside(int64_t devices, int64_t stride) {
  const NodeGroup* const found = group(devices, stride);
  return found != nullptr && found->nodes == 1;
}

const NodeGroup& TrainingLinks::placed(int64_t devices, int64_t stride) {
  const NodeGroup* const found = group(devices, stride);
  if (found == nullptr) {
    throw_error(
        "plan_training: {} devices, each {} ids from the next, are not a box of the cluster {}; expected the same part of "
        "each node or slice; choose sizes that divide it",
        devices, stride, cluster_.name());
  }
  return *found;
}

double TrainingLinks::listed(MessageKind kind, double sent, int64_t devices, int64_t stride, double seconds,
                             double times) {
  if (lists_) listed_.push_back({kind, devices, stride, sent, times, times * seconds});
  return times * seconds;
}

double TrainingLinks::seconds(CollectiveOp op, double bytes, int64_t devices, int64_t stride,
                              const Efficiency& efficiency, double times, bool sharp) {
  if (devices <= 1 || bytes <= 0 || !counts(message_of(op))) return 0;
  const double each = once(op, bytes, devices, stride, efficiency, sharp, false);
  return listed(message_of(op), received_bytes(op, bytes, devices), devices, stride, each, times);
}

double TrainingLinks::once(CollectiveOp op, double bytes, int64_t devices, int64_t stride, const Efficiency& efficiency,
                           bool sharp, bool is_dispatch) {
  if (devices <= 1 || bytes <= 0) return 0;
  const NodeGroup& group = placed(devices, stride);
  double best = std::numeric_limits<double>::infinity();
  for (const TransferCost& cost : collective_costs(op, bytes, group)) {
    best = std::min(best, reached(cost, bytes, efficiency, is_dispatch).seconds());
  }
  if (op == CollectiveOp::kAllReduce && sharp && group.nodes > 1) {
    best = std::min(best, sharp_seconds(bytes, group, efficiency));
  }
  return best;
}

double TokenRoutes::nodes_reached(int64_t nodes) const noexcept {
  // Expected number of distinct places that a number of random draws hit.
  const auto places = [](double all, double draws) { return all * (1 - std::pow(1 - 1 / all, draws)); };
  const auto n = static_cast<double>(nodes);
  const auto g = static_cast<double>(groups);
  const auto c = static_cast<double>(chosen);
  if (chosen >= groups) return places(n, copies);
  return nodes >= groups ? places(n * c / g, copies) : places(n, places(c, copies));
}

double TrainingLinks::expert_seconds(double bytes, const TokenRoutes& routes, int64_t devices, int64_t stride,
                                     const Efficiency& efficiency, double times) {
  if (devices <= 1 || bytes <= 0 || !counts(MessageKind::kAllToAll)) return 0;
  const auto exchange = [&](double all, int64_t among, int64_t apart_by) {
    return once(CollectiveOp::kAllToAll, all, among, apart_by, efficiency, false, true);
  };
  const double global = static_cast<double>(devices) * bytes;
  const auto result = [&](double each) {
    const double sent = received_bytes(CollectiveOp::kAllToAll, global, devices);
    return listed(MessageKind::kAllToAll, sent, devices, stride, each, times);
  };
  const double apart = exchange(global, devices, stride);
  const int64_t nodes = placed(devices, stride).nodes;
  const int64_t inside = devices / nodes;
  if (nodes == 1 || routes.copies <= 1) return result(apart);
  const auto n = static_cast<double>(nodes);
  const double reached_nodes = routes.nodes_reached(nodes);
  const double between = exchange(n * bytes * reached_nodes / routes.copies, nodes, stride * inside);
  const double forwarded = exchange(static_cast<double>(inside) * bytes, inside, stride);
  return result(std::min(apart, std::max(between, forwarded)));
}

double TrainingLinks::send_seconds(double bytes, int64_t devices, int64_t stride, const Efficiency& efficiency,
                                   double times) {
  if (bytes <= 0 || !counts(MessageKind::kSend)) return 0;
  const double each = send_once(bytes, placed(2, stride), efficiency);
  return listed(MessageKind::kSend, bytes, devices, stride, each, times);
}

double TrainingLinks::send_once(double bytes, const NodeGroup& pair, const Efficiency& efficiency) const {
  if (pair.nodes > 1) {
    return reached({"send", "network", pair.latency.step, bytes / pair.egress}, bytes, efficiency).seconds();
  }
  double rate = 0;
  double latency = 0;
  if (const auto* torus = std::get_if<TorusGroup>(&pair.local)) {
    double hops = 0;
    for (const GroupAxis& axis : torus->axes) hops += axis.size > 1 ? static_cast<double>(axis.stride) : 0;
    rate = torus->link / std::max(hops, 1.0);
    latency = std::max(hops, 1.0) * torus->latency.step;
  } else if (const auto* behind = std::get_if<SwitchGroup>(&pair.local)) {
    rate = behind->egress;
    latency = behind->latency.step;
  } else {
    const auto& mesh = std::get<FullMeshGroup>(pair.local);
    rate = mesh.link;
    latency = mesh.latency.step;
  }
  return reached({"send", "links", latency, bytes / rate}, bytes, efficiency).seconds();
}

}  // namespace artifex_devices::planner
