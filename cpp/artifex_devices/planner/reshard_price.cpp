// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/reshard_price.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/planner/link_loads.h"
#include "artifex_devices/planner/placed_group.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMostMessages = int64_t{1} << 22;

/// Bytes out of and into things with numbers.
class Traffic {
 public:
  void add(int64_t from, int64_t to, int64_t bytes) {
    most_ = std::max({most_, out_[from] += bytes, in_[to] += bytes});
  }
  double most() const noexcept { return static_cast<double>(most_); }

 private:
  std::unordered_map<int64_t, int64_t> out_;
  std::unordered_map<int64_t, int64_t> in_;
  int64_t most_ = 0;
};

void take_slower(Price* price, double transfer, std::string_view limit) {
  if (transfer <= price->transfer) return;
  price->transfer = transfer;
  price->limit = limit;
}

/// Numbers of positions: the groups along the step's axes, one list a group.
std::vector<std::vector<int64_t>> groups_of(const ReshardSequence& sequence, const ReshardStep& step,
                                            int64_t positions) {
  std::vector<int64_t> offsets{0};
  for (auto axis = step.axes.rbegin(); axis != step.axes.rend(); ++axis) {  // minor first
    const SubAxis& sub = sequence.axes[static_cast<size_t>(*axis)];
    std::vector<int64_t> more;
    for (int64_t coordinate = 0; coordinate < sub.size; ++coordinate) {
      for (const int64_t offset : offsets) more.push_back(offset + coordinate * sub.position_stride);
    }
    offsets = std::move(more);
  }
  std::vector<std::vector<int64_t>> groups;
  for (int64_t position = 0; position < positions; ++position) {
    const bool is_first = std::ranges::all_of(step.axes, [&](int64_t axis) {
      const SubAxis& sub = sequence.axes[static_cast<size_t>(axis)];
      return position / sub.position_stride % sub.size == 0;
    });
    if (!is_first) continue;
    std::vector<int64_t>& group = groups.emplace_back(offsets);
    for (int64_t& member : group) member += position;
  }
  return groups;
}

/// The messages of a permute; replicas send one each where none keeps its own.
std::vector<Message> messages_of_permute(const TileGrid& before, const TileGrid& after, int64_t shard_bytes,
                                         const std::vector<int64_t>& devices) {
  std::vector<Message> messages;
  for (int64_t position = 0; position < after.positions(); ++position) {
    const int64_t tile = after.tile(position);
    if (before.tile(position) == tile) continue;
    const int64_t holder = before.position(tile, after.replica(position));
    messages.push_back({devices[static_cast<size_t>(holder)], devices[static_cast<size_t>(position)], shard_bytes});
  }
  return messages;
}

Price price_as_ring(const Cluster& cluster, const std::vector<std::vector<int64_t>>& groups, int64_t shard_bytes) {
  std::vector<Message> messages;
  for (const auto& group : groups) {
    for (size_t i = 0; i < group.size(); ++i) {
      messages.push_back({group[i], group[(i + 1) % group.size()], shard_bytes});
    }
  }
  Price price = price_messages(cluster, messages).price;
  const auto rounds = static_cast<double>(groups.front().size() - 1);
  price.latency *= rounds;
  price.transfer *= rounds;
  price.algorithm = "ring in the order of the mesh";
  return price;
}

Price price_as_messages(const Cluster& cluster, const std::vector<std::vector<int64_t>>& groups, int64_t part_bytes) {
  const auto size = static_cast<int64_t>(groups.front().size());
  if (static_cast<int64_t>(groups.size()) * size > kMostMessages / size) {
    fail(
        "plan_reshard: {} groups of {} devices are no boxes of the cluster {}, and too many to price message by "
        "message; expected at most {} messages; lay the mesh out with mesh_utils.create_device_mesh",
        groups.size(), size, cluster.name(), kMostMessages);
  }
  std::vector<Message> messages;
  for (const auto& group : groups) {
    for (const int64_t from : group) {
      for (const int64_t to : group) {
        if (from != to) messages.push_back({from, to, part_bytes});
      }
    }
  }
  Price price = price_messages(cluster, messages).price;
  price.algorithm = "direct";
  return price;
}

}  // namespace

ClusterLink link_between(const Cluster& cluster, int64_t from, int64_t to) noexcept {
  const int64_t per_chip = cluster.chip().devices_per_chip;
  if (from == to) return ClusterLink::kSameDevice;
  if (from / per_chip == to / per_chip) return ClusterLink::kSameChip;
  const int64_t per_slice = cluster.devices_per_slice();
  return from / per_slice == to / per_slice ? ClusterLink::kInside : ClusterLink::kNetwork;
}

LinkBytes bytes_by_link(const Cluster& cluster, const std::vector<Message>& messages) noexcept {
  LinkBytes bytes{};
  for (const Message& each : messages) {
    bytes[static_cast<size_t>(link_between(cluster, each.from, each.to))] += each.bytes;
  }
  return bytes;
}

MessagesPrice price_messages(const Cluster& cluster, const std::vector<Message>& messages) {
  const SliceNetwork& inside = cluster.inside();
  const int64_t per_chip = cluster.chip().devices_per_chip;
  const int64_t per_slice = cluster.chips_per_slice();
  MessagesPrice result;
  std::map<int64_t, LinkLoads> tori;  // by slice
  Traffic chips;
  Traffic hosts;
  std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
  for (const Message& message : messages) {
    check_interrupt();
    for (const int64_t id : {message.from, message.to}) {
      if (id < 0 || id >= cluster.device_count()) {
        fail("plan_reshard: device {} is not in the cluster {}; expected 0 to {}; plan with devices of the cluster", id,
             cluster.name(), cluster.device_count() - 1);
      }
    }
    const int64_t from = message.from / per_chip;
    const int64_t to = message.to / per_chip;
    const ClusterLink link = link_between(cluster, message.from, message.to);
    result.bytes[static_cast<size_t>(link)] += message.bytes;
    if (link == ClusterLink::kNetwork) {
      hosts.add(cluster.place_of(message.from).process, cluster.place_of(message.to).process, message.bytes);
    } else if (link == ClusterLink::kInside) {
      if (inside.kind == NetworkKind::kTorus) {
        auto torus = tori.find(from / per_slice);
        if (torus == tori.end()) torus = tori.try_emplace(from / per_slice, inside.dims, inside.wraps).first;
        torus->second.add(from % per_slice, to % per_slice, static_cast<double>(message.bytes));
      } else if (inside.kind == NetworkKind::kSwitch) {
        chips.add(from, to, message.bytes);
      } else {
        pairs[{from, to}] += message.bytes;
      }
    }
  }
  Price& price = result.price;
  price.algorithm = "all at once";
  if (result.bytes[static_cast<size_t>(ClusterLink::kInside)] > 0) {
    const double rate = cluster.link_bandwidth().value;
    double longest = 1;
    double most = chips.most();
    for (const auto& [slice, loads] : tori) {
      most = std::max(most, loads.most_bytes());
      longest = std::max(longest, static_cast<double>(loads.longest_path()));
    }
    for (const auto& [pair, bytes] : pairs) most = std::max(most, static_cast<double>(bytes));
    take_slower(&price, most / rate, inside.kind == NetworkKind::kSwitch ? "egress" : "links");
    price.latency = longest * cluster.link_latency().value;
  }
  if (result.bytes[static_cast<size_t>(ClusterLink::kNetwork)] > 0) {
    const double rate = cluster.network_bandwidth().value * static_cast<double>(cluster.chips_per_host());
    take_slower(&price, hosts.most() / rate, "network");
    price.latency = std::max(price.latency, cluster.network_latency().value);
  }
  return result;
}

Price price_step(const Cluster& cluster, const ReshardSequence& sequence, size_t step,
                 const std::vector<int64_t>& devices) {
  const ReshardStep& what = sequence.steps[step];
  const TileGrid& before = sequence.grids[step];
  if (static_cast<int64_t>(devices.size()) != before.positions()) {
    fail("plan_reshard: {} devices are given for {} positions; expected one each", devices.size(), before.positions());
  }
  if (what.move == ReshardMove::kSlice) return {.algorithm = "in place"};
  if (what.move == ReshardMove::kPermute) {
    return price_messages(cluster, messages_of_permute(before, sequence.grids[step + 1], what.shard_bytes, devices))
        .price;
  }
  auto groups = groups_of(sequence, what, before.positions());
  for (auto& group : groups) {
    for (int64_t& member : group) member = devices[static_cast<size_t>(member)];
  }
  const bool gathers = what.move == ReshardMove::kAllGather;
  const Collective op = gathers ? Collective::kAllGather : Collective::kAllToAll;
  const auto bytes = static_cast<double>(gathers ? what.shard_bytes_after : what.shard_bytes * what.group);
  Price slowest;
  for (const auto& group : groups) {
    const std::optional<NodeGroup> placed = placed_group(cluster, group);
    if (!placed) {
      return gathers ? price_as_ring(cluster, groups, what.shard_bytes)
                     : price_as_messages(cluster, groups, what.shard_bytes / what.group);
    }
    const CollectiveCost cost = collective_costs(op, bytes, *placed).front();
    if (slowest.algorithm.empty() || cost.seconds() > slowest.seconds()) {
      slowest = {cost.latency, cost.transfer, cost.algorithm, cost.limit};
    }
  }
  return slowest;
}

int64_t network_bytes(const Cluster& cluster, const ReshardSequence& sequence, size_t step,
                      const std::vector<int64_t>& devices) {
  const ReshardStep& what = sequence.steps[step];
  const TileGrid& before = sequence.grids[step];
  if (cluster.slices() == 1 || what.move == ReshardMove::kSlice) return 0;
  const auto slice_of = [&](int64_t id) { return id / cluster.devices_per_slice(); };
  int64_t bytes = 0;
  if (what.move == ReshardMove::kPermute) {
    for (const Message& each : messages_of_permute(before, sequence.grids[step + 1], what.shard_bytes, devices)) {
      if (slice_of(each.from) != slice_of(each.to)) bytes += each.bytes;
    }
    return bytes;
  }
  for (const auto& group : groups_of(sequence, what, before.positions())) {
    std::map<int64_t, int64_t> members;  // by slice
    for (const int64_t position : group) ++members[slice_of(devices[static_cast<size_t>(position)])];
    for (const auto& [slice, count] : members) {
      const int64_t others = what.group - count;
      bytes += what.move == ReshardMove::kAllGather ? others * what.shard_bytes
                                                    : others * count * (what.shard_bytes / what.group);
    }
  }
  return bytes;
}

double least_seconds(const Cluster& cluster, const std::vector<int64_t>& chip_bytes,
                     const std::vector<int64_t>& slice_bytes) {
  const SliceNetwork& inside = cluster.inside();
  const int64_t per_slice = cluster.chips_per_slice();
  double links = 1;
  if (inside.kind == NetworkKind::kTorus) {
    links = 0;
    for (const int dim : inside.dims) links += dim > 2 ? 2 : dim - 1;
  } else if (inside.kind == NetworkKind::kFullMesh) {
    links = static_cast<double>(per_slice - 1);
  }
  const auto most = [](const std::vector<int64_t>& bytes) {
    return bytes.empty() ? 0.0 : static_cast<double>(*std::ranges::max_element(bytes));
  };
  double seconds = 0;
  double rate = cluster.slices() > 1 ? cluster.network_bandwidth().value : 0;
  if (most(slice_bytes) > 0 && cluster.slices() > 1) {
    seconds = most(slice_bytes) / (rate * static_cast<double>(per_slice));
    // A host's chips share its network: one of them may have all of it.
    rate *= static_cast<double>(cluster.chips_per_host());
  }
  if (most(chip_bytes) > 0 && per_slice > 1) rate += links * cluster.link_bandwidth().value;
  return most(chip_bytes) > 0 && rate > 0 ? std::max(seconds, most(chip_bytes) / rate) : seconds;
}

}  // namespace artifex_devices
