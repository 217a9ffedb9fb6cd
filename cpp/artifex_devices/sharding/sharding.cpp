// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/sharding.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

BufferMap::BufferMap(const TileGrid& grid, const DeviceList& devices)
    : is_tile_(devices.on_one_arena() && devices.is_fully_addressable()), size_(grid.tiles()) {
  if (is_tile_) return;
  size_ = 0;
  buffer_of_position_.assign(static_cast<size_t>(grid.positions()), -1);
  const int64_t arenas = devices.client()->arenas();
  std::unordered_map<int64_t, int64_t> buffer_of;  // tile and arena
  for (int64_t i = 0; i < devices.addressable_count(); ++i) {
    const int64_t position = devices.addressable_position(i);
    const int64_t tile = grid.tile(position);
    const int64_t key = tile * arenas + devices[position]->arena_index();
    const auto [entry, is_new] = buffer_of.try_emplace(key, size_);
    if (is_new) {
      ++size_;
      position_of_buffer_.push_back(position);
    }
    buffer_of_position_[static_cast<size_t>(position)] = entry->second;
  }
  has_every_tile_ = devices.addressable_count() > 0 && holds_complete_runs(grid, devices, grid.tiles());
}

std::vector<BufferPlace> BufferMap::places(const TileGrid& grid, const DeviceList& devices) const {
  std::vector<BufferPlace> places(static_cast<size_t>(size_));
  for (int64_t buffer = 0; buffer < size_; ++buffer) {
    const int64_t first = position(grid, buffer);
    const Device* device = devices[first];
    places[static_cast<size_t>(buffer)] = {grid.tile(first), device->id(), device->arena_index(), 0, 0};
  }
  return places;
}

ShardDomains Sharding::domains(const Dims& shape, std::string_view operation) const {
  return ShardDomains(grid_, shape, uneven_, names(operation));
}

bool Sharding::covers(const Sharding& other, const Dims& shape, std::string_view operation) const {
  if (grid_ == other.grid_ && uneven_ == other.uneven_) return true;
  const ShardDomains held = domains(shape, operation);
  const ShardDomains wanted = other.domains(shape, operation);
  for (int64_t position = 0; position < grid_.positions(); ++position) {
    const IndexDomain outer = held.domain(grid_.tile(position));
    const IndexDomain inner = wanted.domain(other.grid_.tile(position));
    for (int64_t d = 0; d < shape.size(); ++d) {
      const bool is_inside =
          outer.origin[d] <= inner.origin[d] && inner.origin[d] + inner.shape[d] <= outer.origin[d] + outer.shape[d];
      if (!is_inside) return false;
    }
  }
  return true;
}

bool Sharding::is_equivalent_to(const Sharding& other, int64_t ndim) const {
  for (const Sharding* sharding : {this, &other}) {
    const int64_t least = sharding->grid_.parts().size();
    if (ndim < least) {
      throw_error(
          "is_equivalent_to: ndim is {} but {} cuts {} dimensions; expected ndim of {} or more; give the rank of the "
          "arrays",
          ndim, sharding->to_string(), least, least);
    }
  }
  if (this == &other) return true;
  if (memory_kind_ != other.memory_kind_ || !(grid_ == other.grid_) || is_abstract() != other.is_abstract())
    return false;
  if (devices_ && !(*devices_ == *other.devices_)) return false;
  return uneven_ == other.uneven_ || grid_.tiles() == 1;
}

bool holds_complete_runs(const TileGrid& grid, const DeviceList& devices, int64_t run) {
  if (run <= 1 || devices.is_fully_addressable()) return true;
  std::unordered_set<int64_t> held;            // process and tile
  std::unordered_map<int64_t, int64_t> sizes;  // process and run: tiles held of it
  const int64_t runs = grid.tiles() / run;
  for (int64_t position = 0; position < grid.positions(); ++position) {
    const int64_t process = devices[position]->process_index();
    const int64_t tile = grid.tile(position);
    if (held.insert(process * grid.tiles() + tile).second) ++sizes[process * runs + tile / run];
  }
  return std::ranges::all_of(sizes, [&](const auto& entry) { return entry.second == run; });
}

void check_has_devices(const Sharding& sharding, std::string_view operation) {
  if (!sharding.is_abstract()) return;
  throw_error(
      "{}: {} is on an AbstractMesh, which has no devices; expected a sharding on a Mesh; make a Mesh of the same axes",
      operation, sharding.to_string());
}

}  // namespace artifex_devices
