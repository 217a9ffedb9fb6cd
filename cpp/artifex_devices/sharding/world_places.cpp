// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/world_places.h"

#include <unordered_set>

namespace artifex_devices {

WorldPlaces::WorldPlaces(const Sharding& sharding) {
  const DeviceList& devices = *sharding.devices();
  const Client& client = *devices.client();
  const TileGrid& grid = sharding.grid();
  if (!client.is_multi_process()) {
    places.reserve(static_cast<size_t>(sharding.buffers().size()));
    local_numbers.reserve(static_cast<size_t>(sharding.buffers().size()));
    for (int64_t b = 0; b < sharding.buffers().size(); ++b) {
      const int64_t position = sharding.position_of(b);
      const Device& device = *devices[position];
      places.push_back({grid.tile(position), device.id(), device.arena_index(), 0, 0});
      local_numbers.push_back(b);
    }
    return;
  }
  std::unordered_set<int64_t> known;  // tile and arena
  for (int64_t position = 0; position < grid.positions(); ++position) {
    const Device& device = *devices[position];
    const int64_t tile = grid.tile(position);
    if (!known.insert(tile * client.arenas() + device.arena_index()).second) continue;
    const int process = device.process_index();
    places.push_back({tile, device.id(), device.arena_index(), process, client.host_of_process(process)});
    local_numbers.push_back(device.is_addressable() ? sharding.buffer_at(position) : -1);
  }
}

}  // namespace artifex_devices
