// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/messages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/link_loads.h"

namespace artifex_devices::planner {
namespace {

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

void take_slower(TransferCost* price, double transfer, std::string_view limit) {
  if (transfer <= price->transfer) return;
  price->transfer = transfer;
  price->limit = limit;
}

/// What messages wait for, at published rates.
struct MessageLoads {
  double inside = 0;   // bytes on the busiest link
  double network = 0;  // bytes of the busiest host
  TransferCost links{.algorithm = "all at once"};
  TransferCost between{.algorithm = "all at once"};

  TransferCost price(const Efficiency& efficiency) const {
    TransferCost slower = reached(links, inside, efficiency);
    const TransferCost other = reached(between, network, efficiency);
    take_slower(&slower, other.transfer, other.limit);
    slower.latency = std::max(slower.latency, other.latency);
    return slower;
  }
};

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
                             const Efficiency& efficiency, std::string_view operation, double times) {
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
  MessageLoads loads;
  if (result.bytes[static_cast<size_t>(ClusterLink::kInside)] > 0) {
    const double rate = cluster.link_bandwidth().value;
    double longest = 1;
    double most = chips.most();
    for (const auto& [slice, torus] : tori) {
      most = std::max(most, torus.most_bytes());
      longest = std::max(longest, static_cast<double>(torus.longest_path()));
    }
    for (const auto& [pair, bytes] : pairs) most = std::max(most, static_cast<double>(bytes));
    loads.inside = most * times;
    take_slower(&loads.links, loads.inside / rate, inside.kind == NetworkKind::kSwitch ? "egress" : "links");
    loads.links.latency = longest * cluster.link_latency().value;
  }
  if (result.bytes[static_cast<size_t>(ClusterLink::kNetwork)] > 0) {
    const double rate = cluster.network_bandwidth().value * static_cast<double>(cluster.chips_per_host());
    loads.network = hosts.most() * times;
    take_slower(&loads.between, loads.network / rate, "network");
    loads.between.latency = cluster.network_latency().value;
  }
  result.price = {loads.price(efficiency), loads.price(ideal_efficiency())};
  return result;
}

void add_host_link(const Cluster& cluster, const std::vector<DeviceMessage>& messages, bool from_device,
                   const Efficiency& efficiency, TransferPrice* price) {
  if (messages.empty()) return;
  if (!cluster.chip().host_bandwidth) {
    throw_error<Unavailable>(
        "cluster {:?}: its bandwidth between host and chip is not known; expected a number to compute seconds with; "
        "give `bandwidth` of [host] in a TOML file",
        cluster.name());
  }
  std::map<int64_t, int64_t> chips;
  double most = 0;
  for (const DeviceMessage& each : messages) {
    int64_t& chip = chips[(from_device ? each.from : each.to) / cluster.chip().devices_per_chip];
    most = std::max(most, static_cast<double>(chip += each.bytes));
  }
  const double seconds = most / cluster.chip().host_bandwidth->value;
  take_slower(&price->expected, seconds / efficiency[Factor::kHost], "host");
  take_slower(&price->bound, seconds, "host");
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
