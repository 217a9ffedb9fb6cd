// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/world_places.h"

#include <unordered_set>

namespace artifex_devices {

WorldPlaces::WorldPlaces(const Sharding& sharding) {
  const DeviceList& devices = *sharding.devices();
  const Client& client = *devices.client();
  const TileGrid& grid = sharding.grid();
  if (!client.is_multi_process()) {
    places.reserve(sharding.buffers().size());
    local_buffers.reserve(sharding.buffers().size());
    for (const BufferId buffer : sharding.buffers().ids()) {
      const Position position = sharding.position_of(buffer);
      const Device& device = *devices[position];
      places.push_back({grid.tile(position), device.id(), device.arena_index(), client.process_index(), 0});
      local_buffers.push_back(buffer);
    }
    return;
  }
  std::unordered_set<int64_t> known;  // tile and arena
  for (const Position position : sharding.positions()) {
    const Device& device = *devices[position];
    const TileId tile = grid.tile(position);
    if (!known.insert(tile.number() * client.arenas() + device.arena_index().number()).second) continue;
    const ProcessIndex process = device.process_index();
    places.push_back({tile, device.id(), device.arena_index(), process, client.host_of_process(process)});
    local_buffers.push_back(device.is_addressable() ? sharding.buffer_at(position) : BufferId());
  }
}

}  // namespace artifex_devices
