// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "artifex_devices/base/id.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/device/device_list.h"
#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// The distinct buffers that an array of this sharding has in this process. Positions that hold the same tile in the
/// same arena share a buffer, since arrays are immutable. Where all devices use one arena of this process, buffer b
/// holds tile b, and nothing is stored. Cheap to copy.
class BufferMap {
 public:
  BufferMap() = default;  // without devices
  BufferMap(const TileGrid& grid, const DeviceList& devices);

  int64_t size() const noexcept { return size_; }
  IdRange<BufferId> ids() const noexcept { return IdRange<BufferId>(size_); }
  /// Returns none if the position belongs to another process.
  BufferId buffer(const TileGrid& grid, Position position) const noexcept {
    return is_tile() ? BufferId(grid.tile(position).number()) : table_->buffer_of_position[position];
  }
  /// The first position that uses the buffer.
  Position position(const TileGrid& grid, BufferId buffer) const noexcept {
    return is_tile() ? grid.position(TileId(buffer.number()), 0) : table_->position_of_buffer[buffer];
  }
  /// Whether buffer b holds tile b, for all tiles.
  bool is_tile() const noexcept { return table_ == nullptr; }
  /// Whether the global array can be read: each process that has devices of the sharding has a buffer of every tile.
  /// The same in all these processes, because their next operations may depend on it.
  bool has_every_tile() const noexcept { return has_every_tile_; }

 private:
  struct Table {
    IdVector<Position, BufferId> buffer_of_position;
    IdVector<BufferId, Position> position_of_buffer;
  };
  std::shared_ptr<const Table> table_;
  bool has_every_tile_ = true;
  int64_t size_ = 0;
};

/// One buffer of an array in this process, and the box that it holds.
struct Shard {
  BufferId buffer;
  Position position;  // the first position that uses the buffer
  TileId tile;
  IndexDomain box;  // in indices of the global array
};

/// The shards of an array of one shape in this process, one for each distinct buffer, and the boxes of all tiles. It
/// does not refer to the sharding. Each shard is computed on access.
///
/// Example: shape (8,) with P('x') on a mesh {x: 2, y: 2} of one arena: buffers 0 and 1, positions 0 and 2, boxes
/// [0, 4) and [4, 8).
class Shards : public ShardDomains {
 public:
  /// Throws as ShardDomains.
  Shards(const TileGrid& grid, const Dims& shape, Uneven uneven, const Names& names, const BufferMap& buffers)
      : ShardDomains(grid, shape, uneven, names), buffers_(buffers) {}

  int64_t size() const noexcept { return buffers_.size(); }
  Shard operator[](BufferId buffer) const {
    const Position position = buffers_.position(grid(), buffer);
    const TileId tile = grid().tile(position);
    return {buffer, position, tile, domain(tile)};
  }

  class Iterator {
   public:
    using value_type = Shard;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Shards* shards, BufferId buffer) noexcept : shards_(shards), buffer_(buffer) {}
    Shard operator*() const { return (*shards_)[buffer_]; }
    Iterator& operator++() noexcept {
      ++buffer_;
      return *this;
    }
    Iterator operator++(int) noexcept { return {shards_, buffer_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Shards* shards_ = nullptr;
    BufferId buffer_;
  };
  Iterator begin() const noexcept { return {this, BufferId(0)}; }
  Iterator end() const noexcept { return {this, BufferId(size())}; }

 private:
  BufferMap buffers_;
};

/// Whether the tiles that each process holds form complete runs of `run` tiles: a process with tile t holds all `run`
/// tiles from t / run * run on. The result is the same in all processes. Example: x sharded over its last dimension
/// only, `run` parts: each process holds complete rows.
bool holds_complete_runs(const TileGrid& grid, const DeviceList& devices, int64_t run);

}  // namespace artifex_devices
