// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/mesh_explanation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr std::array<const char*, 4> kAxisLetters = {"x", "y", "z", "core"};

/// The network that joins the devices of a mesh.
struct Network {
  NetworkKind kind = NetworkKind::kTorus;
  std::string text;
  std::string source;
  std::vector<int64_t> slice_of;  // of each device: 0, 1, ...
  int64_t slices = 1;
  std::vector<int64_t> place_of;  // of each device in (slices, *dims) of a torus, row-major
  Torus torus;
  double inside = 0;  // bytes/s of a link, or out of a device behind a switch
  double latency = 0;
  std::optional<double> between;
  double between_latency = 0;
};

/// Slices that one group of an axis spans, and its members in one of them, at most.
struct GroupSpan {
  int64_t slices = 1;
  int64_t members = 1;
};

[[noreturn]] void refuse_unknown_network(const MeshDevices& devices) {
  throw_error(
      "explain: the network of {} devices is not known; expected devices of a cluster that has its bandwidths; see "
      "artifex_devices.cluster",
      devices.device_kind);
}

void check_each_device_once(const MeshDevices& devices) {
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> found;  // first position and count
  for (int64_t i = 0; i < devices.size(); ++i) {
    const MeshDevice& each = devices.devices[static_cast<size_t>(i)];
    ++found.try_emplace({each.slice_index, each.id}, i, 0).first->second.second;
  }
  for (const auto& [key, place] : found) {
    if (place.second == 1) continue;
    throw_error("explain: {} is in the mesh {} times; expected each device once; remove the duplicates",
                devices.texts.device(place.first), place.second);
  }
}

/// The source of the rate between slices, and the latencies that a cluster does not have.
std::string further_sources(const Cluster* cluster, int64_t slices) {
  if (cluster == nullptr) return "";
  std::string text;
  if (slices > 1 && cluster->between().bandwidth) text = "; between slices " + cluster->between().bandwidth->source;
  std::vector<std::string> unknown;
  if (!cluster->inside().latency) unknown.emplace_back("a step inside");
  if (slices > 1 && !cluster->between().latency) unknown.emplace_back("a step between slices");
  if (!unknown.empty()) text += fmt::format("; left out, as not known: {}", fmt::join(unknown, ", "));
  return text;
}

/// Fills the torus, its text and the places of the devices in it.
void add_torus(const MeshDevices& devices, const std::string& prefix, Network* network) {
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(network->slices));
  for (const int64_t i : devices.positions()) {
    members[static_cast<size_t>(network->slice_of[static_cast<size_t>(i)])].push_back(i);
  }
  network->place_of.resize(devices.devices.size());
  std::vector<int64_t> dims;
  int64_t first = 0;
  for (const std::vector<int64_t>& slice : members) {
    const FilledTorus torus = filled_torus(devices, slice);
    if (first > 0 && torus.dims != dims) {
      throw_error("explain: slices are of {} and {}; expected slices of one shape; explain them one by one",
                  to_string(Dims(torus.dims)), to_string(Dims(dims)));
    }
    dims = torus.dims;
    for (size_t place = 0; place < torus.order.size(); ++place) {
      network->place_of[static_cast<size_t>(torus.order[place])] = first + static_cast<int64_t>(place);
    }
    first += static_cast<int64_t>(slice.size());
  }
  TorusLinks links = torus_links(devices, dims);
  if (links.source.empty()) refuse_unknown_network(devices);
  std::vector<std::string> wrapped;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (links.torus.wraps[d]) wrapped.emplace_back(kAxisLetters[d]);
  }
  network->text = fmt::format("{}{} {} (torus, {})", prefix, devices.device_kind, fmt::join(dims, "x"),
                              wrapped.empty() ? "no wraparound" : fmt::format("wraps on {}", fmt::join(wrapped, ", ")));
  network->torus = std::move(links.torus);
  network->inside = network->torus.link_bandwidth;
  network->latency = network->torus.hop_latency;
  network->source = std::move(links.source);
}

Network network_of(const MeshDevices& devices) {
  Network network;
  std::set<int64_t> numbers;
  for (const MeshDevice& each : devices.devices) numbers.insert(each.slice_index);
  const std::vector<int64_t> sorted(numbers.begin(), numbers.end());
  for (const MeshDevice& each : devices.devices) {
    network.slice_of.push_back(std::ranges::lower_bound(sorted, each.slice_index) - sorted.begin());
  }
  network.slices = static_cast<int64_t>(sorted.size());
  const Cluster* cluster = devices.cluster.get();
  if (cluster != nullptr) {
    const NetworkBetween& between = cluster->between();
    if (between.bandwidth) network.between = between.bandwidth->value;
    if (between.latency) network.between_latency = between.latency->value;
  }
  // A cluster file may put GPUs on a torus, and TPUs behind a switch.
  const bool is_torus = cluster != nullptr ? cluster->inside().kind == NetworkKind::kTorus : devices.platform == "tpu";
  const std::string prefix =
      network.slices == 1 ? "" : fmt::format("{} {} of ", network.slices, is_torus ? "slices" : "nodes");
  if (is_torus) {
    add_torus(devices, prefix, &network);
  } else {
    if (cluster == nullptr || !cluster->inside().bandwidth) refuse_unknown_network(devices);
    const SliceNetwork& inside = cluster->inside();
    network.kind = inside.kind;
    network.text = fmt::format("{}{} ({})", prefix, devices.device_kind, to_string(inside.kind));
    network.inside = inside.bandwidth->value;
    network.latency = inside.latency ? inside.latency->value : 0;
    network.source = inside.bandwidth->source;
  }
  network.source += further_sources(cluster, network.slices);
  return network;
}

GroupSpan span_of(const std::vector<int64_t>& slice_of, const Dims& shape, int64_t axis) {
  GroupSpan span;
  int64_t stride = 1;
  for (int64_t d = axis + 1; d < shape.size(); ++d) stride *= shape[d];
  std::map<int64_t, int64_t> counts;
  for (int64_t first = 0; first < static_cast<int64_t>(slice_of.size()); ++first) {
    if (first / stride % shape[axis] != 0) continue;
    counts.clear();
    for (int64_t k = 0; k < shape[axis]; ++k) ++counts[slice_of[static_cast<size_t>(first + k * stride)]];
    span.slices = std::max(span.slices, static_cast<int64_t>(counts.size()));
    for (const auto& [slice, count] : counts) span.members = std::max(span.members, count);
  }
  return span;
}

/// Rates of the axes on the torus; with the parts of the slices' own axis removed.
std::vector<AxisRate> torus_rates(const Network& network, const std::vector<int64_t>& order, const Dims& shape,
                                  const std::vector<int64_t>& slice_of, const std::vector<GroupSpan>& spans) {
  std::vector<int64_t> places;
  for (const int64_t position : order) places.push_back(network.place_of[static_cast<size_t>(position)]);
  int64_t inside = 1;
  std::vector<int64_t> members;
  for (const GroupSpan& each : spans) {
    members.push_back(each.members);
    inside *= each.members;
  }
  const auto count = static_cast<int64_t>(places.size());
  if (inside * network.slices == count) {
    // Each slice holds a box of the mesh of the same shape: the rates of one slice are the rates of all.
    std::vector<int64_t> first_slice;
    for (size_t i = 0; i < places.size(); ++i) {
      if (slice_of[i] == 0) first_slice.push_back(places[i] % (count / network.slices));
    }
    return rates_of(network.torus, members, first_slice);
  }
  Torus joined = network.torus;
  joined.dims.insert(joined.dims.begin(), network.slices);
  joined.wraps.insert(joined.wraps.begin(), false);
  std::vector<AxisRate> rates = rates_of(joined, {shape.begin(), shape.end()}, places);
  for (AxisRate& rate : rates) {
    std::erase_if(rate.parts, [](const AxisPart& part) { return part.physical_axis == 0; });
    for (AxisPart& part : rate.parts) --part.physical_axis;
  }
  return rates;
}

/// Sets bandwidth, hops and links of an axis inside its slice.
void add_inside(const Network& network, const AxisRate* rate, int64_t members, AxisExplanation* axis) {
  axis->bandwidth = std::numeric_limits<double>::infinity();
  if (members == 1) return;
  axis->hops = 1;
  if (network.kind == NetworkKind::kSwitch) {
    axis->bandwidth = network.inside;
    axis->links = fmt::format("switch, {} devices", members);
  } else if (network.kind == NetworkKind::kFullMesh) {
    axis->bandwidth = network.inside * static_cast<double>(members - 1);
    axis->links = fmt::format("links of {} devices to each other", members);
  } else if (rate->parts.empty()) {
    axis->bandwidth = rate->bandwidth;
    axis->hops = rate->hops;
    axis->links = fmt::format("a ring that shares its links {:g} ways", rate->link_load);
  } else {
    axis->bandwidth = 0;
    axis->hops = 0;
    for (const AxisPart& part : rate->parts) {
      axis->bandwidth += part.bandwidth;
      axis->hops += part.stride * (part.is_ring ? part.count / 2 : part.count - 1);
      axis->links += fmt::format("{}{}: {} of {}", axis->links.empty() ? "" : " and ",
                                 kAxisLetters[static_cast<size_t>(part.physical_axis)], part.is_ring ? "ring" : "line",
                                 part.count);
      if (part.stride > 1) axis->links += fmt::format(", stride {}", part.stride);
    }
  }
}

AxisExplanation explained_axis(const Network& network, int64_t size, const GroupSpan& span, const AxisRate* rate,
                               double traffic) {
  AxisExplanation axis;
  axis.size = size;
  axis.slices = span.slices;
  if (size == 1) {
    axis.links = "one device";
    axis.bandwidth = std::numeric_limits<double>::infinity();
    return axis;
  }
  add_inside(network, rate, span.members, &axis);
  const double received = static_cast<double>(size - 1) / static_cast<double>(size);
  if (span.members > 1) {
    axis.seconds = traffic * received / axis.bandwidth + static_cast<double>(axis.hops) * network.latency;
  }
  if (span.slices == 1) return axis;
  if (!network.between) {
    throw_error(
        "explain: the bandwidth between slices is not known; expected devices of a cluster that has network_bandwidth; "
        "see artifex_devices.cluster");
  }
  const auto slices = static_cast<double>(span.slices);
  const double crossing = (slices - 1) / slices / static_cast<double>(span.members) / *network.between;
  axis.seconds = std::max(axis.seconds, traffic * crossing + (slices - 1) * network.between_latency);
  axis.links += fmt::format("{}{} slices", axis.links.empty() ? "" : " and ", span.slices);
  axis.bandwidth = std::min(axis.bandwidth, received / crossing);
  return axis;
}

std::vector<AxisExplanation> explained_axes(const Network& network, const std::vector<int64_t>& order,
                                            const Dims& shape, const std::vector<double>& traffic) {
  std::vector<int64_t> slice_of;
  for (const int64_t position : order) slice_of.push_back(network.slice_of[static_cast<size_t>(position)]);
  std::vector<GroupSpan> spans;
  for (int64_t d = 0; d < shape.size(); ++d) spans.push_back(span_of(slice_of, shape, d));
  std::vector<AxisRate> rates;
  if (network.kind == NetworkKind::kTorus) rates = torus_rates(network, order, shape, slice_of, spans);
  std::vector<AxisExplanation> axes;
  for (size_t d = 0; d < spans.size(); ++d) {
    const AxisRate* rate = rates.empty() ? nullptr : &rates[d];
    axes.push_back(explained_axis(network, shape[static_cast<int64_t>(d)], spans[d], rate, traffic[d]));
  }
  return axes;
}

/// For each device its place in a picture.
std::vector<MeshDevice> picture_places(const MeshDevices& devices, bool is_torus) {
  std::vector<MeshDevice> places = devices.devices;
  if (is_torus) return places;
  std::map<int64_t, int64_t> next;  // number of the next device of each slice
  for (const int64_t position : devices.positions_by_id()) {
    MeshDevice& each = places[static_cast<size_t>(position)];
    each.coords = {next[each.slice_index]++, 0, 0};
    each.core_on_chip = 0;
  }
  return places;
}

}  // namespace

MeshExplanation explain_mesh(const MeshDevices& devices, const Dims& shape, const std::vector<double>& traffic) {
  check_each_device_once(devices);
  const Network network = network_of(devices);
  MeshExplanation result;
  const std::string sizes = shape.empty() ? "one device" : fmt::format("{}", fmt::join(shape, "x"));
  result.title = fmt::format("{} on {}", sizes, network.text);
  result.source = network.source;
  result.network = to_string(network.kind);
  for (size_t d = 0; d < std::min<size_t>(3, network.torus.wraps.size()); ++d) result.wraps[d] = network.torus.wraps[d];
  result.axes = explained_axes(network, devices.positions(), shape, traffic);
  result.places = picture_places(devices, network.kind == NetworkKind::kTorus);
  result.axes_by_id = explained_axes(network, devices.positions_by_id(), shape, traffic);
  return result;
}

}  // namespace artifex_devices
