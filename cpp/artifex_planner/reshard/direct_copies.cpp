// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/direct_copies.h"

#include <algorithm>
#include <unordered_map>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {

PlacedEnd place_on_cluster(const ShardDomains& domains, const std::vector<int64_t>& devices, const Cluster& cluster) {
  PlacedEnd end{domains, devices, {}, {}};
  const std::vector<TileId> tiles = domains.grid().tiles_by_position().values();
  if (tiles.size() != devices.size()) {
    throw_error("plan_reshard: there are {} devices for {} positions; expected one for each position", devices.size(),
                tiles.size());
  }
  for (int64_t i = 0; i < std::ssize(devices); ++i) end.buffers.emplace_back(i);
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i] < 0 || devices[i] >= cluster.device_count()) {
      throw_error(
          "plan_reshard: the mesh has device {}, but the cluster {} has ids 0 to {}; expected devices of the cluster; "
          "make the mesh of cluster.devices(), or use a larger cluster",
          devices[i], cluster.name(), cluster.device_count() - 1);
    }
    const ClusterPlace at = cluster.place_of(devices[i]);
    end.places.push_back({tiles[i], DeviceId(devices[i]), ArenaIndex(devices[i]), ProcessIndex(at.process),
                          static_cast<int32_t>(at.slice)});
  }
  return end;
}

double most_copies(const ShardDomains& from, const ShardDomains& to, int64_t buffers) {
  auto copies = static_cast<double>(buffers);
  for (int64_t d = 0; d < from.shape().size(); ++d) {
    const int64_t chunk = from.shard_shape()[d];
    if (chunk == 0 || d >= to.shape().size()) return 0;
    int64_t most = 0;
    for (int64_t part = 0; part < to.grid().parts(d); ++part) {
      const int64_t begin = to.begin(d, part);
      const int64_t end = to.begin(d, part + 1);
      if (end > begin) most = std::max(most, (end - 1) / chunk - begin / chunk + 1);
    }
    copies *= static_cast<double>(most);
  }
  return copies;
}

DirectCopies make_direct_copies(const PlacedEnd& source, const PlacedEnd& destination, int64_t itemsize,
                                bool copies_all) {
  DirectCopies direct{
      ReshardPlan(source.domains, source.places, destination.domains, destination.places, itemsize, copies_all), {}};
  IdVector<PlaceId, int64_t> into(destination.places.size());
  direct.plan.for_each_copy([&](const ReshardCopy& copy) {
    if (copy.link != LinkKind::kSameDevice) into[copy.destination] += copy.bytes;
  });
  IdVector<PlaceId, bool> is_reused(destination.places.size());
  for (const auto& [to, from] : direct.plan.reused()) is_reused[to] = true;

  const auto tile_bytes = [&](const ShardDomains& domains, size_t position) {
    return domains.domain(Position(static_cast<int64_t>(position))).volume() * itemsize;
  };
  std::unordered_map<int64_t, int64_t> held;
  for (size_t i = 0; i < source.devices.size(); ++i) held[source.devices[i]] += tile_bytes(source.domains, i);
  direct.bytes_in.assign(destination.devices.size(), 0);
  IdVector<PlaceId, bool> is_counted(into.size());
  for (size_t i = 0; i < destination.devices.size(); ++i) {
    const PlaceId buffer = destination.buffers[i];
    if (!is_counted[buffer]) direct.bytes_in[i] = into[buffer];
    is_counted[buffer] = true;
    if (!is_reused[buffer]) held[destination.devices[i]] += tile_bytes(destination.domains, i);
  }
  for (const auto& [device, bytes] : held) direct.peak_bytes = std::max(direct.peak_bytes, bytes);
  return direct;
}

std::vector<DeviceMessage> messages_of(const DirectCopies& direct, const PlacedEnd& source,
                                       const PlacedEnd& destination) {
  std::vector<DeviceMessage> messages;
  messages.reserve(static_cast<size_t>(direct.plan.copy_count()));
  direct.plan.for_each_copy([&](const ReshardCopy& copy) {
    messages.push_back(
        {source.places[copy.source].device.number(), destination.places[copy.destination].device.number(), copy.bytes});
  });
  return messages;
}

}  // namespace artifex_devices::planner
