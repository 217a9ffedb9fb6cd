// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/world_places.h"

#include <numeric>
#include <unordered_set>

namespace artifex_devices {

WorldPlaces::WorldPlaces(const Sharding& sharding) {
  const DeviceList& devices = *sharding.devices();
  const Client& client = *devices.client();
  const TileGrid& grid = sharding.grid();
  if (!client.is_multi_process()) {
    places = sharding.buffers().places(grid, devices);
    local_numbers.resize(places.size());
    std::iota(local_numbers.begin(), local_numbers.end(), int64_t{0});
    return;
  }
  std::unordered_set<int64_t> known;  // tile and arena
  for (int64_t position = 0; position < grid.positions(); ++position) {
    const Device& device = *devices[position];
    const int64_t tile = grid.tile(position);
    if (!known.insert(tile * client.arenas() + device.arena_index()).second) continue;
    const int process = device.process_index();
    places.push_back({tile, device.id(), device.arena_index(), process, client.host_of_process(process)});
    local_numbers.push_back(device.is_addressable() ? sharding.buffers().buffer(grid, position) : -1);
  }
}

}  // namespace artifex_devices
