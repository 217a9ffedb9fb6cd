// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/collectives.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

constexpr std::string_view kCostOperation = "collective_costs";
// Seconds; the model of NVIDIA/nccl, src/graph/tuning.cc, in its later versions.
constexpr double kInSwitchLatency = 23e-6;
constexpr int64_t kLeastInSwitch = 3;  // devices; NCCL reduces fewer by messages

using Costs = std::vector<TransferCost>;

int64_t rounds_of(int64_t devices) { return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(devices - 1))); }

/// n^2 of the table's all-to-all entries: n^2 - 1 where n is odd.
double square_of(int64_t n) { return static_cast<double>(n * n - n % 2); }

void check_rate(double rate, std::string_view what) {
  if (!(rate > 0) || std::isinf(rate)) {
    throw_error("{}: {} is {} bytes/s; expected more than 0; give the rate of one direction", kCostOperation, what,
                rate);
  }
}

void check_latency(const CollectiveLatency& latency) {
  if (!(latency.once >= 0) || !(latency.step >= 0) || std::isinf(latency.once + latency.step)) {
    throw_error("{}: the latency is {} s and {} s per step; expected 0 or more", kCostOperation, latency.once,
                latency.step);
  }
}

void check_count(int64_t count, std::string_view what) {
  // Squares of it must be exact.
  if (count < 1 || count > (int64_t{1} << 26)) {
    throw_error("{}: {} is {}; expected 1 to 2**26; count the devices of one group", kCostOperation, what, count);
  }
}

void check(const LocalGroup& group) {
  if (const auto* torus = std::get_if<TorusGroup>(&group)) {
    check_rate(torus->link, "the link");
    check_latency(torus->latency);
    double devices = 1;
    for (const GroupAxis& axis : torus->axes) {
      check_count(axis.size, "the size of an axis");
      check_count(axis.stride, "the stride of an axis");
      devices *= static_cast<double>(axis.size);
    }
    if (devices > double{1 << 26})
      throw_error("{}: the group has {} devices; expected at most 2**26", kCostOperation, devices);
  } else if (const auto* behind = std::get_if<SwitchGroup>(&group)) {
    check_rate(behind->egress, "the egress");
    check_latency(behind->latency);
    check_count(behind->devices, "the number of devices");
  } else {
    const auto& mesh = std::get<FullMeshGroup>(group);
    check_rate(mesh.link, "the link");
    check_latency(mesh.latency);
    check_count(mesh.devices, "the number of devices");
  }
}

void check_bytes(double bytes) {
  if (!(bytes >= 0) || std::isinf(bytes)) {
    throw_error("{}: bytes is {}; expected 0 or more; give the bytes of the global array of the group", kCostOperation,
                bytes);
  }
}

/// Two collectives in sequence, such as a reduce-scatter and an all-gather.
TransferCost twice(TransferCost cost, double once) {
  cost.latency = 2 * cost.latency - once;  // one program: it starts once
  cost.transfer *= 2;
  return cost;
}

/// A ring that is used in one direction; needs a wrapped axis.
Costs ring_costs(CollectiveOp op, double bytes, const TorusGroup& group, const GroupAxis& axis) {
  const auto n = static_cast<double>(axis.size);
  const double link = group.link / static_cast<double>(axis.stride);
  const double hops = (n - 1) * static_cast<double>(axis.stride) * group.latency.step + group.latency.once;
  const TransferCost gather{"ring, one direction", "links", hops, bytes * (n - 1) / (n * link)};
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
      return {gather};
    case CollectiveOp::kAllReduce:
      return {twice(gather, group.latency.once)};
    case CollectiveOp::kAllToAll:
      return {{gather.algorithm, "links", hops, bytes * (n - 1) / (2 * n * link)}};
    case CollectiveOp::kBroadcast:
      return {};
  }
  return {};
}

std::string_view torus_algorithm(const std::vector<GroupAxis>& axes) {
  const auto wrapped = std::ranges::count_if(axes, &GroupAxis::wrap);
  if (axes.size() == 1) return wrapped == 1 ? "ring, both directions" : "line, both directions";
  if (wrapped == 0) return "mesh, all axes at once";
  return "torus, all axes at once";
}

Costs torus_costs(CollectiveOp op, double bytes, TorusGroup group) {
  std::erase_if(group.axes, [](const GroupAxis& axis) { return axis.size == 1; });
  double devices = 1;
  double in = 0;       // links into the worst-placed device, in links of stride 1
  double longest = 0;  // path, in hops
  for (GroupAxis& axis : group.axes) {
    axis.wrap = axis.wrap && axis.size * axis.stride > 2;  // two neighbours have one link
    const auto stride = static_cast<double>(axis.stride);
    devices *= static_cast<double>(axis.size);
    in += (axis.wrap ? 2 : 1) / stride;
    longest += static_cast<double>(axis.wrap ? axis.size / 2 : axis.size - 1) * stride;
  }
  const CollectiveLatency& latency = group.latency;
  const std::string_view name = torus_algorithm(group.axes);
  const double hops = latency.once + longest * latency.step;
  TransferCost gather{name, "links", hops, bytes * (devices - 1) / (devices * in * group.link)};
  gather.is_bound = group.axes.size() > 1;
  Costs costs;
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
      costs = {gather};
      break;
    case CollectiveOp::kAllReduce:
      costs = {twice(gather, latency.once)};
      break;
    case CollectiveOp::kAllToAll: {
      TransferCost all{name, "links", hops};
      for (const GroupAxis& axis : group.axes) {
        const double load = square_of(axis.size) / ((axis.wrap ? 8 : 4) * static_cast<double>(axis.size) * devices);
        all.transfer = std::max(all.transfer, bytes * load * static_cast<double>(axis.stride) / group.link);
      }
      costs = {all};
      break;
    }
    case CollectiveOp::kBroadcast: {
      double slowest = 0;
      for (const GroupAxis& axis : group.axes) slowest = std::max(slowest, static_cast<double>(axis.stride));
      costs = {{"pipelined along the axes", "links", hops, bytes * slowest / group.link}};
      TransferCost both{"scatter and all-gather", "links", 2 * hops - latency.once, 2 * gather.transfer};
      both.is_bound = true;
      costs.push_back(both);
      break;
    }
  }
  if (group.axes.size() == 1 && group.axes[0].wrap) {
    const Costs more = ring_costs(op, bytes, group, group.axes[0]);
    costs.insert(costs.end(), more.begin(), more.end());
  }
  return costs;
}

Costs switch_costs(CollectiveOp op, double bytes, const SwitchGroup& group) {
  const auto n = static_cast<double>(group.devices);
  const auto rounds = static_cast<double>(rounds_of(group.devices));
  const CollectiveLatency& latency = group.latency;
  const auto after = [&](double steps) { return latency.once + steps * latency.step; };
  const double gather = bytes * (n - 1) / (n * group.egress);
  const double whole = bytes / group.egress;
  const std::string_view ring = "ring";
  const std::string_view doubling = op == CollectiveOp::kReduceScatter ? "recursive halving" : "recursive doubling";
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
      return {{ring, "egress", after(n - 1), gather}, {doubling, "egress", after(rounds), gather}};
    case CollectiveOp::kAllReduce: {
      Costs costs = {{ring, "egress", after(2 * (n - 1)), 2 * gather},
                     {"recursive halving and doubling", "egress", after(2 * rounds), 2 * gather},
                     {doubling, "egress", after(rounds), rounds * whole}};
      // Each device sends its array and the sum of its own part, and receives the other parts.
      if (group.adds && group.devices >= kLeastInSwitch) {
        costs.push_back({kSumsInSwitch, "egress", kInSwitchLatency, whole * (1 + 1 / n)});
      }
      return costs;
    }
    case CollectiveOp::kAllToAll:
      return {{"direct", "egress", after(1), bytes * (n - 1) / (n * n * group.egress)},
              {"Bruck", "egress", after(rounds), whole / n * rounds / 2}};
    case CollectiveOp::kBroadcast:
      return {{"binomial tree", "egress", after(rounds), rounds * whole},
              {"scatter and all-gather", "egress", after(rounds + n - 1), 2 * gather}};
  }
  return {};
}

Costs full_mesh_costs(CollectiveOp op, double bytes, const FullMeshGroup& group) {
  const auto n = static_cast<double>(group.devices);
  const CollectiveLatency& latency = group.latency;
  const double step = latency.once + latency.step;
  const TransferCost gather{"direct", "links", step, bytes / (n * group.link)};
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
      return {gather};
    case CollectiveOp::kAllReduce:
      return {twice(gather, latency.once)};
    case CollectiveOp::kAllToAll:
      return {{"direct", "links", step, bytes / (n * n * group.link)}};
    case CollectiveOp::kBroadcast: {
      TransferCost both = twice(gather, latency.once);
      both.algorithm = "scatter and all-gather";
      return {{"direct", "links", step, bytes / group.link}, both};
    }
  }
  return {};
}

Costs sorted(Costs costs, double bytes, const Efficiency& efficiency) {
  for (TransferCost& cost : costs) cost = reached(cost, bytes, efficiency);
  std::ranges::stable_sort(costs, {}, &TransferCost::seconds);
  return costs;
}

TransferCost local_best(CollectiveOp op, double bytes, const LocalGroup& group) {
  return collective_costs(op, bytes, group).front();
}

/// A collective in two stages, over the devices of each node and over the nodes: in sequence, or pipelined over parts
/// of the array, where the slower stage counts.
TransferCost two_stages(std::string_view name, const TransferCost& local, double outer_latency, double outer,
                        bool at_once) {
  TransferCost cost{name, local.transfer > outer ? local.limit : "network", local.latency + outer_latency,
                    at_once ? std::max(local.transfer, outer) : local.transfer + outer};
  cost.is_bound = local.is_bound;
  return cost;
}

Costs hierarchy_costs(CollectiveOp op, double bytes, const NodeGroup& group) {
  const auto m = static_cast<double>(group.nodes);
  const auto g = static_cast<double>(devices_of(group.local));
  const double node_egress = group.egress * g;
  const auto rounds = static_cast<double>(rounds_of(group.nodes));
  const CollectiveLatency& latency = group.latency;
  const auto after = [&](double steps) { return latency.once + steps * latency.step; };
  const double across = bytes * (m - 1) / (m * node_egress);
  constexpr std::string_view kAtOnce = "nodes and devices at once";
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter: {
      // Each device exchanges its own part over its own share of the network; the devices of a node exchange the rest.
      const TransferCost local = local_best(op, bytes, group.local);
      return {two_stages(kAtOnce, local, after(rounds), across, true),
              two_stages("nodes, then devices", local, after(rounds), across, false)};
    }
    case CollectiveOp::kAllReduce: {
      // A reduce-scatter and an all-gather, each as above.
      const TransferCost scatter = local_best(CollectiveOp::kReduceScatter, bytes, group.local);
      const TransferCost gather = local_best(CollectiveOp::kAllGather, bytes, group.local);
      TransferCost local = scatter;
      local.latency += gather.latency;
      local.transfer += gather.transfer;
      return {two_stages(kAtOnce, local, after(2 * rounds), 2 * across, true),
              two_stages("scatter inside, reduce across, gather inside", local, after(2 * rounds), 2 * across, false)};
    }
    case CollectiveOp::kAllToAll: {
      const TransferCost local = local_best(op, bytes / (m * m), group.local);
      return {two_stages(kAtOnce, local, after(1), bytes * (m - 1) / (m * m * node_egress), true)};
    }
    case CollectiveOp::kBroadcast: {
      const TransferCost local = local_best(op, bytes, group.local);
      return {
          two_stages("binomial tree of nodes, then devices", local, after(rounds), rounds * bytes / node_egress, false),
          two_stages("scatter and all-gather of nodes, then devices", local, after(rounds + m - 1), 2 * across, false)};
    }
  }
  return {};
}

}  // namespace

int64_t devices_of(const LocalGroup& group) noexcept {
  if (const auto* torus = std::get_if<TorusGroup>(&group)) {
    int64_t devices = 1;
    for (const GroupAxis& axis : torus->axes) devices *= axis.size;
    return devices;
  }
  if (const auto* behind = std::get_if<SwitchGroup>(&group)) return behind->devices;
  return std::get<FullMeshGroup>(group).devices;
}

int64_t devices_of(const NodeGroup& group) noexcept { return group.nodes * devices_of(group.local); }

double received_bytes(CollectiveOp op, double bytes, int64_t devices) noexcept {
  if (devices <= 1) return 0;
  const auto n = static_cast<double>(devices);
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
      return bytes * (n - 1) / n;
    case CollectiveOp::kAllReduce:
      return 2 * bytes * (n - 1) / n;
    case CollectiveOp::kAllToAll:
      return bytes / n * (n - 1) / n;
    case CollectiveOp::kBroadcast:
      return bytes;
  }
  return 0;
}

std::vector<TransferCost> collective_costs(CollectiveOp op, double bytes, const LocalGroup& group,
                                           const Efficiency& efficiency) {
  check_bytes(bytes);
  check(group);
  if (devices_of(group) == 1) return {{"none", "nothing", 0, 0}};
  if (const auto* torus = std::get_if<TorusGroup>(&group))
    return sorted(torus_costs(op, bytes, *torus), bytes, efficiency);
  if (const auto* behind = std::get_if<SwitchGroup>(&group))
    return sorted(switch_costs(op, bytes, *behind), bytes, efficiency);
  return sorted(full_mesh_costs(op, bytes, std::get<FullMeshGroup>(group)), bytes, efficiency);
}

std::vector<TransferCost> collective_costs(CollectiveOp op, double bytes, const NodeGroup& group,
                                           const Efficiency& efficiency) {
  check_count(group.nodes, "the number of nodes");
  if (group.nodes == 1) return collective_costs(op, bytes, group.local, efficiency);
  check_bytes(bytes);
  check(group.local);
  check_rate(group.egress, "the egress of a device into the network");
  check_latency(group.latency);
  return sorted(hierarchy_costs(op, bytes, group), bytes, efficiency);
}

}  // namespace artifex_devices::planner
