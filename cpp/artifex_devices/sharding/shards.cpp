// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/shards.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace artifex_devices {

BufferMap::BufferMap(const TileGrid& grid, const DeviceList& devices) : size_(grid.tiles()) {
  if (devices.on_one_arena() && devices.is_fully_addressable()) return;
  size_ = 0;
  auto table = std::make_shared<Table>();
  table->buffer_of_position = IdVector<Position, BufferId>(grid.positions());
  const int64_t arenas = devices.client()->arenas();
  std::unordered_map<int64_t, BufferId> buffer_of;  // by tile and arena
  for (int64_t i = 0; i < devices.addressable_count(); ++i) {
    const Position position = devices.addressable_position(i);
    const int64_t key = grid.tile(position).number() * arenas + devices[position]->arena_index().number();
    const auto [entry, is_new] = buffer_of.try_emplace(key, size_);
    if (is_new) {
      ++size_;
      table->position_of_buffer.push_back(position);
    }
    table->buffer_of_position[position] = entry->second;
  }
  table_ = std::move(table);
  has_every_tile_ = devices.addressable_count() > 0 && holds_complete_runs(grid, devices, grid.tiles());
}

bool holds_complete_runs(const TileGrid& grid, const DeviceList& devices, int64_t run) {
  if (run <= 1 || devices.is_fully_addressable()) return true;
  std::unordered_set<int64_t> held;            // process and tile
  std::unordered_map<int64_t, int64_t> sizes;  // process and run: tiles held of it
  const int64_t runs = grid.tiles() / run;
  for (const Position position : IdRange<Position>(grid.positions())) {
    const int64_t process = devices[position]->process_index().number();
    const int64_t tile = grid.tile(position).number();
    if (held.insert(process * grid.tiles() + tile).second) ++sizes[process * runs + tile / run];
  }
  return std::ranges::all_of(sizes, [&](const auto& entry) { return entry.second == run; });
}

}  // namespace artifex_devices
