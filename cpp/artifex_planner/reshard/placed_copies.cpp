// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/placed_copies.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_machine.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/sharding/world_places.h"

namespace artifex_devices::planner {
namespace {

constexpr double kMostDrawnCopies = 1 << 17;  // about 0.1 s; a picture has few arrows anyway

ClusterRef cluster_under(const Sharding& sharding) {
  if (sharding.is_abstract()) return nullptr;
  return cluster_of(*sharding.devices()->client());
}

/// The buffers that transfers of this sharding have.
PlacedEnd place_in_world(const Sharding& sharding, const ShardDomains& domains) {
  PlacedEnd end{domains, device_ids(sharding), WorldPlaces(sharding).places, {}};
  std::map<std::pair<TileId, ArenaIndex>, PlaceId> buffer_of;
  for (const PlaceId i : end.places.ids()) buffer_of[{end.places[i].tile, end.places[i].arena}] = i;
  for (const Position position : sharding.positions()) {
    const Device& device = sharding.device(position);
    const auto found = buffer_of.find({sharding.grid().tile(position), device.arena_index()});
    if (found == buffer_of.end()) {
      throw_error<Unavailable>(
          "{}: {} has no buffer in the plan of transfers; this is a bug of artifex_devices; report it", kPlanReshard,
          device.to_string());
    }
    end.buffers.push_back(found->second);
  }
  return end;
}

PlacedEnd place(const Sharding& sharding, const ShardDomains& domains, const Cluster* cluster) {
  return cluster ? place_on_cluster(domains, device_ids(sharding), *cluster) : place_in_world(sharding, domains);
}

}  // namespace

ClusterRef cluster_of(const Client& client) {
  const auto* machine = dynamic_cast<const ClusterMachine*>(&client.machine());
  return machine != nullptr ? machine->cluster() : nullptr;
}

ClusterRef network_of(const Device& device) {
  ClusterRef found = cluster_of(device.client());
  if (found || device.platform() != "gpu") return found;
  return links_of_gpus(device.device_kind(), device.client().device_count());
}

std::vector<int64_t> device_ids(const Sharding& sharding) {
  std::vector<int64_t> ids;
  ids.reserve(static_cast<size_t>(sharding.num_devices()));
  if (sharding.is_abstract()) {
    for (int64_t i = 0; i < sharding.num_devices(); ++i) ids.push_back(i);
    return ids;
  }
  for (const Device* device : sharding.devices()->devices()) ids.push_back(device->id().number());
  return ids;
}

ClusterRef cluster_for(const ClusterRef& given, const Sharding& source, const Sharding& destination) {
  if (given) return given;
  const ClusterRef from = cluster_under(source);
  const ClusterRef to = cluster_under(destination);
  const bool is_one = from && to ? *from == *to : source.is_abstract() || destination.is_abstract() || from == to;
  if (!is_one) {
    throw_error(
        "{}: the ends are on {} and {}; expected devices of one cluster, or of this process; give cluster= to plan on",
        kPlanReshard, from ? from->name() : "devices of this process", to ? to->name() : "devices of this process");
  }
  return from ? from : to;
}

void check_size(const Sharding& sharding, const Cluster* cluster) {
  if (cluster && sharding.num_devices() > cluster->device_count()) {
    throw_error("{}: the mesh has {} devices, the cluster {} has {}; expected at most these; take a larger cluster",
                kPlanReshard, sharding.num_devices(), cluster->name(), cluster->device_count());
  }
}

double copies_between(const Sharding& from, const Sharding& to, const Dims& shape, const Cluster* cluster) {
  // Replicas on devices that share a memory are one buffer.
  const auto buffers = cluster ? to.num_devices() : static_cast<int64_t>(WorldPlaces(to).places.size());
  return most_copies(from.domains(shape, kPlanReshard), to.domains(shape, kPlanReshard), buffers);
}

PlacedCopies placed_copies(const Sharding& from, const Sharding& to, const Dims& shape, int64_t itemsize,
                           const Cluster* cluster, double most) {
  const ShardDomains source = from.domains(shape, kPlanReshard);
  const ShardDomains destination = to.domains(shape, kPlanReshard);
  check_size(from, cluster);
  check_size(to, cluster);
  const double copies = copies_between(from, to, shape, cluster);
  if (copies > most) {
    throw_error("{}: there are about {:.3g} direct copies; expected at most {:.0f} to plan one by one; {}",
                kPlanReshard, copies, most,
                copies > kMostCopies ? "use collectives, or plan a smaller cluster"
                                     : "ask for them by way=\"copies\", which takes seconds");
  }
  PlacedEnd before = place(from, source, cluster);
  PlacedEnd after = place(to, destination, cluster);
  DirectCopies direct = make_direct_copies(before, after, itemsize, from.memory_kind() != to.memory_kind());
  return {std::move(before), std::move(after), std::move(direct)};
}

DrawnCopies drawn_copies(const Sharding& from, const Sharding& to, const Dims& shape, int64_t itemsize,
                         const Cluster* cluster, const std::vector<std::pair<std::string, int64_t>>& bytes_by_link) {
  DrawnCopies drawn;
  const double copies = copies_between(from, to, shape, cluster);
  if (copies > kMostDrawnCopies) {
    drawn.why_none = fmt::format("about {:.3g} direct copies: too many to draw as arrows", copies);
    for (const auto& [link, bytes] : bytes_by_link) {
      if (bytes > 0) drawn.why_none += fmt::format("; {} {}", bytes_text(bytes), link);
    }
    return drawn;
  }
  const PlacedCopies placed = placed_copies(from, to, shape, itemsize, cluster, kMostDrawnCopies);
  placed.direct.plan.for_each_copy([&](const ReshardCopy& copy) {
    drawn.messages.push_back({placed.source.places[copy.source].device.number(),
                              placed.destination.places[copy.destination].device.number(), copy.bytes});
  });
  return drawn;
}

}  // namespace artifex_devices::planner
