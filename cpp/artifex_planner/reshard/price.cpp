// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/price.h"

#include <algorithm>
#include <map>
#include <utility>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/link_loads.h"
#include "artifex_planner/collective/placed_group.h"
#include "artifex_planner/reshard/position_ranges.h"

namespace artifex_devices::planner {
namespace {

constexpr int64_t kMostPricedMessages = int64_t{1} << 22;

/// Bytes out of and into numbered chips, hosts or slices.
class EndpointTraffic {
 public:
  void add(int64_t from, int64_t to, int64_t bytes) {
    const auto count = static_cast<size_t>(std::max(from, to)) + 1;
    if (count > bytes_.size()) bytes_.resize(std::max(count, 2 * bytes_.size()));
    most_ =
        std::max({most_, bytes_[static_cast<size_t>(from)].out += bytes, bytes_[static_cast<size_t>(to)].in += bytes});
  }
  double most() const noexcept { return static_cast<double>(most_); }

 private:
  struct Bytes {
    int64_t out = 0;
    int64_t in = 0;
  };
  std::vector<Bytes> bytes_;
  int64_t most_ = 0;
};

double most_of(const std::vector<int64_t>& bytes) {
  return bytes.empty() ? 0.0 : static_cast<double>(*std::ranges::max_element(bytes));
}

void take_slower(ReshardPrice* price, double transfer, std::string_view limit) {
  if (transfer <= price->transfer) return;
  price->transfer = transfer;
  price->limit = limit;
}

std::vector<PositionRange> ranges_of(const ReshardSequence& sequence, const ReshardStep& step) {
  std::vector<PositionRange> ranges;
  for (const int64_t axis : step.axes) {
    const SubAxis& sub = sequence.axes[static_cast<size_t>(axis)];
    ranges.push_back({sub.size, sub.position_stride});
  }
  return ranges;
}

/// Devices of the groups along the step's axes, one list for each group; all groups, or representatives.
struct Groups {
  std::vector<std::vector<int64_t>> devices;
  int64_t alike = 1;  // groups that are placed like each listed one
};

/// Whether all groups along the ranges are placed like the first one: positions are device ids, and the ranges are
/// digits of chips along the axes of tori, and of slices.
bool are_alike(const Cluster& cluster, const std::vector<PositionRange>& ranges, const std::vector<int64_t>& devices) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] != static_cast<int64_t>(i)) return false;
  }
  std::vector<int64_t> boundaries{1, cluster.chip().devices_per_chip};
  for (const int dim : cluster.inside().dims) boundaries.push_back(boundaries.back() * dim);
  return std::ranges::all_of(ranges, [&](const PositionRange& range) { return are_digits(range, boundaries); });
}

Groups groups_of(const std::vector<PositionRange>& ranges, const std::vector<int64_t>& devices, bool one_of_all) {
  std::vector<int64_t> offsets{0};
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {  // minor first
    std::vector<int64_t> more;
    for (int64_t coordinate = 0; coordinate < range->size; ++coordinate) {
      for (const int64_t offset : offsets) more.push_back(offset + coordinate * range->stride);
    }
    offsets = std::move(more);
  }
  const auto count = static_cast<int64_t>(devices.size());
  const std::vector<int64_t> firsts = one_of_all ? std::vector<int64_t>{0} : first_positions(ranges, count);
  Groups groups;
  if (one_of_all) groups.alike = count / static_cast<int64_t>(offsets.size());
  for (const int64_t first : firsts) {
    std::vector<int64_t>& group = groups.devices.emplace_back(offsets);
    for (int64_t& member : group) member = devices[static_cast<size_t>(first + member)];
  }
  return groups;
}

/// The messages of a permute; replicas send one each where none keeps its own.
std::vector<DeviceMessage> messages_of_permute(const TileGrid& before, const TileGrid& after, int64_t shard_bytes,
                                               const std::vector<int64_t>& devices) {
  const std::vector<int64_t> had = before.tiles_by_position();
  const std::vector<int64_t> wanted = after.tiles_by_position();
  std::vector<DeviceMessage> messages;
  messages.reserve(wanted.size());
  const bool has_replicas = after.replicas() > 1;
  for (size_t position = 0; position < wanted.size(); ++position) {
    if (had[position] == wanted[position]) continue;
    const int64_t replica = has_replicas ? after.replica(static_cast<int64_t>(position)) : 0;
    const int64_t holder = before.position(wanted[position], replica);
    messages.push_back({devices[static_cast<size_t>(holder)], devices[position], shard_bytes});
  }
  return messages;
}

ReshardPrice price_as_ring(const Cluster& cluster, const std::vector<std::vector<int64_t>>& groups,
                           int64_t shard_bytes) {
  std::vector<DeviceMessage> messages;
  for (const auto& group : groups) {
    for (size_t i = 0; i < group.size(); ++i) {
      messages.push_back({group[i], group[(i + 1) % group.size()], shard_bytes});
    }
  }
  ReshardPrice price = price_messages(cluster, messages).price;
  const auto rounds = static_cast<double>(groups.front().size() - 1);
  price.latency *= rounds;
  price.transfer *= rounds;
  price.algorithm = "ring in the order of the mesh";
  return price;
}

ReshardPrice price_as_messages(const Cluster& cluster, const std::vector<std::vector<int64_t>>& groups,
                               int64_t part_bytes) {
  const auto size = static_cast<int64_t>(groups.front().size());
  if (static_cast<int64_t>(groups.size()) * size > kMostPricedMessages / size) {
    throw_error(
        "plan_reshard: {} groups of {} devices are not boxes of the cluster {}, and too many to price message by "
        "message; expected at most {} messages; lay the mesh out with mesh_utils.create_device_mesh",
        groups.size(), size, cluster.name(), kMostPricedMessages);
  }
  std::vector<DeviceMessage> messages;
  for (const auto& group : groups) {
    for (const int64_t from : group) {
      for (const int64_t to : group) {
        if (from != to) messages.push_back({from, to, part_bytes});
      }
    }
  }
  ReshardPrice price = price_messages(cluster, messages).price;
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

LinkBytes bytes_by_link(const Cluster& cluster, const std::vector<DeviceMessage>& messages) noexcept {
  LinkBytes bytes{};
  for (const DeviceMessage& each : messages) {
    bytes[static_cast<size_t>(link_between(cluster, each.from, each.to))] += each.bytes;
  }
  return bytes;
}

MessagesPrice price_messages(const Cluster& cluster, const std::vector<DeviceMessage>& messages,
                             std::string_view operation) {
  const SliceNetwork& inside = cluster.inside();
  const int64_t per_chip = cluster.chip().devices_per_chip;
  const int64_t per_slice = cluster.chips_per_slice();
  MessagesPrice result;
  std::map<int64_t, LinkLoads> tori;  // by slice
  EndpointTraffic chips;
  EndpointTraffic hosts;
  std::map<std::pair<int64_t, int64_t>, int64_t> pairs;
  std::vector<int64_t> host_of_chip;  // in a slice
  const auto host_of = [&](int64_t chip) {
    if (host_of_chip.empty()) {
      for (int64_t i = 0; i < per_slice; ++i) host_of_chip.push_back(cluster.place_of(i * per_chip).process);
    }
    return chip / per_slice * cluster.hosts_per_slice() + host_of_chip[static_cast<size_t>(chip % per_slice)];
  };
  int64_t looked_at = 0;
  for (const DeviceMessage& message : messages) {
    if (looked_at++ % 1024 == 0) check_interrupt();
    for (const int64_t id : {message.from, message.to}) {
      if (id < 0 || id >= cluster.device_count()) {
        throw_error("{}: device {} is not in the cluster {}; expected 0 to {}; plan with devices of the cluster",
                    operation, id, cluster.name(), cluster.device_count() - 1);
      }
    }
    const int64_t from = message.from / per_chip;
    const int64_t to = message.to / per_chip;
    const ClusterLink link = link_between(cluster, message.from, message.to);
    result.bytes[static_cast<size_t>(link)] += message.bytes;
    if (link == ClusterLink::kNetwork) {
      hosts.add(host_of(from), host_of(to), message.bytes);
    } else if (link == ClusterLink::kInside) {
      if (inside.kind == NetworkKind::kTorus) {
        auto torus = tori.find(from / per_slice);
        if (torus == tori.end()) {
          torus = tori.try_emplace(from / per_slice, std::vector<int64_t>(inside.dims.begin(), inside.dims.end()),
                                   inside.wraps)
                      .first;
        }
        torus->second.add(from % per_slice, to % per_slice, static_cast<double>(message.bytes));
      } else if (inside.kind == NetworkKind::kSwitch) {
        chips.add(from, to, message.bytes);
      } else {
        pairs[{from, to}] += message.bytes;
      }
    }
  }
  ReshardPrice& price = result.price;
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

void add_host_link(const Cluster& cluster, const std::vector<DeviceMessage>& messages, bool from_device,
                   ReshardPrice* price) {
  if (messages.empty()) return;
  if (!cluster.chip().host_bandwidth) {
    throw_error<Unavailable>(
        "cluster {:?}: its bandwidth between host and chip is not known; expected a number to price with; give "
        "`bandwidth` of [host] in a TOML file",
        cluster.name());
  }
  std::map<int64_t, int64_t> chips;
  double most = 0;
  for (const DeviceMessage& each : messages) {
    int64_t& chip = chips[(from_device ? each.from : each.to) / cluster.chip().devices_per_chip];
    most = std::max(most, static_cast<double>(chip += each.bytes));
  }
  take_slower(price, most / cluster.chip().host_bandwidth->value, "host");
}

std::vector<DeviceMessage> permute_messages(const ReshardSequence& sequence, size_t step,
                                            const std::vector<int64_t>& devices) {
  return messages_of_permute(sequence.grids[step], sequence.grids[step + 1], sequence.steps[step].shard_bytes, devices);
}

ReshardPrice price_step(const Cluster& cluster, const ReshardSequence& sequence, size_t step,
                        const std::vector<int64_t>& devices) {
  const ReshardStep& what = sequence.steps[step];
  const TileGrid& before = sequence.grids[step];
  if (static_cast<int64_t>(devices.size()) != before.positions()) {
    throw_error("plan_reshard: {} devices are given for {} positions; expected one each", devices.size(),
                before.positions());
  }
  if (what.move == ReshardMove::kSlice) return {.algorithm = "in place"};
  if (what.move == ReshardMove::kPermute) {
    return price_messages(cluster, permute_messages(sequence, step, devices)).price;
  }
  const std::vector<PositionRange> ranges = ranges_of(sequence, what);
  const Groups groups = groups_of(ranges, devices, are_alike(cluster, ranges, devices));
  const bool gathers = what.move == ReshardMove::kAllGather;
  const Collective op = gathers ? Collective::kAllGather : Collective::kAllToAll;
  const auto bytes = static_cast<double>(gathers ? what.shard_bytes_after : what.shard_bytes * what.group);
  ReshardPrice slowest;
  for (const auto& group : groups.devices) {
    check_interrupt();
    const std::optional<NodeGroup> placed = placed_group(cluster, group);
    if (!placed) {
      const auto all = groups.alike > 1 ? groups_of(ranges, devices, false).devices : groups.devices;
      return gathers ? price_as_ring(cluster, all, what.shard_bytes)
                     : price_as_messages(cluster, all, what.shard_bytes / what.group);
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
  if (cluster.slices() == 1 || what.move == ReshardMove::kSlice) return 0;
  const auto slice_of = [&](int64_t id) { return id / cluster.devices_per_slice(); };
  int64_t bytes = 0;
  if (what.move == ReshardMove::kPermute) {
    return bytes_by_link(cluster,
                         permute_messages(sequence, step, devices))[static_cast<size_t>(ClusterLink::kNetwork)];
  }
  const std::vector<PositionRange> ranges = ranges_of(sequence, what);
  const Groups groups = groups_of(ranges, devices, are_alike(cluster, ranges, devices));
  for (const auto& group : groups.devices) {
    std::map<int64_t, int64_t> members;  // by slice
    for (const int64_t device : group) ++members[slice_of(device)];
    for (const auto& [slice, count] : members) {
      const int64_t others = what.group - count;
      bytes += what.move == ReshardMove::kAllGather ? others * what.shard_bytes
                                                    : others * count * (what.shard_bytes / what.group);
    }
  }
  return bytes * groups.alike;
}

double links_into(const Cluster& cluster, int64_t chip) noexcept {
  const SliceNetwork& inside = cluster.inside();
  if (inside.kind == NetworkKind::kSwitch) return 1;
  if (inside.kind == NetworkKind::kFullMesh) return static_cast<double>(cluster.chips_per_slice() - 1);
  const std::array<int, 3> coords = cluster.place_of(chip * cluster.chip().devices_per_chip).coords;
  double links = 0;
  for (size_t axis = 0; axis < inside.dims.size(); ++axis) {
    const int last = inside.dims[axis] - 1;
    if (last == 0) continue;
    const bool is_end = !inside.wraps[axis] && (coords[axis] == 0 || coords[axis] == last);
    links += is_end || last == 1 ? 1 : 2;
  }
  return links;
}

bool chips_have_equal_links(const Cluster& cluster) noexcept {
  const SliceNetwork& inside = cluster.inside();
  if (inside.kind != NetworkKind::kTorus) return true;
  for (size_t axis = 0; axis < inside.dims.size(); ++axis) {
    if (inside.dims[axis] > 2 && !inside.wraps[axis]) return false;
  }
  return true;
}

double least_seconds(const Cluster& cluster, const std::vector<double>& chip_bytes, double most_slice_bytes,
                     int64_t slices) {
  const auto most = std::ranges::max_element(chip_bytes);
  const double most_chip_bytes = most == chip_bytes.end() ? 0 : *most;
  const int64_t per_slice = cluster.chips_per_slice();
  double seconds = 0;
  double network = 0;
  if (slices > 1 && (most_slice_bytes > 0 || most_chip_bytes > 0)) {
    network = cluster.network_bandwidth().value;
    seconds = most_slice_bytes / (network * static_cast<double>(per_slice));
    // The chips of a host share its network: one of them may use all of it.
    network *= static_cast<double>(cluster.chips_per_host());
  }
  if (most_chip_bytes <= 0) return seconds;
  const double link = per_slice > 1 ? cluster.link_bandwidth().value : 0;
  if (link == 0 && network == 0) return seconds;
  if (chips_have_equal_links(cluster)) {
    return std::max(seconds, most_chip_bytes / (network + links_into(cluster, 0) * link));
  }
  for (size_t chip = 0; chip < chip_bytes.size(); ++chip) {
    if (chip_bytes[chip] <= 0) continue;
    const double rate = network + links_into(cluster, static_cast<int64_t>(chip)) * link;
    seconds = std::max(seconds, chip_bytes[chip] / rate);
  }
  return seconds;
}

double least_seconds(const Cluster& cluster, const std::vector<int64_t>& chip_bytes,
                     const std::vector<int64_t>& slice_bytes) {
  return least_seconds(cluster, std::vector<double>(chip_bytes.begin(), chip_bytes.end()), most_of(slice_bytes),
                       static_cast<int64_t>(slice_bytes.size()));
}

}  // namespace artifex_devices::planner
