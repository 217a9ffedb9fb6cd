// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/device/device_list.h"
#include "artifex_devices/partition/reshard_plan.h"
#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices {

/// The distinct buffers that an array of this sharding has in this process. Positions that hold the same tile in the
/// same arena share a buffer, since arrays are immutable. Where all devices use one arena of this process, buffer b
/// holds tile b, and nothing is stored.
class BufferMap {
 public:
  BufferMap() = default;  // without devices
  BufferMap(const TileGrid& grid, const DeviceList& devices);

  int64_t size() const noexcept { return size_; }
  /// -1 for a position of another process.
  int64_t buffer(const TileGrid& grid, int64_t position) const noexcept {
    return is_tile_ ? grid.tile(position) : buffer_of_position_[static_cast<size_t>(position)];
  }
  /// The first position that uses the buffer.
  int64_t position(const TileGrid& grid, int64_t buffer) const noexcept {
    return is_tile_ ? grid.position(buffer, 0) : position_of_buffer_[static_cast<size_t>(buffer)];
  }
  /// Whether buffer b holds tile b, for all tiles.
  bool is_tile() const noexcept { return is_tile_; }
  /// Whether the global array can be read: each process that has devices of the sharding has a buffer of every tile.
  /// The same in all of these processes, because what they do next may depend on it.
  bool has_every_tile() const noexcept { return has_every_tile_; }
  /// Tile, device id and arena of each buffer, for reshard plans.
  std::vector<BufferPlace> places(const TileGrid& grid, const DeviceList& devices) const;

 private:
  bool is_tile_ = true;
  bool has_every_tile_ = true;
  int64_t size_ = 0;
  std::vector<int64_t> buffer_of_position_;
  std::vector<int64_t> position_of_buffer_;
};

/// Placement of arrays of any shape on devices. Base class of NamedSharding and SingleDeviceSharding; immutable,
/// shared.
class Sharding {
 public:
  virtual ~Sharding() = default;
  Sharding(const Sharding&) = delete;
  Sharding& operator=(const Sharding&) = delete;

  /// Devices by position. Null for an abstract sharding, which computes shapes but cannot hold data.
  const DeviceListRef& devices() const noexcept { return devices_; }
  bool is_abstract() const noexcept { return devices_ == nullptr; }
  const TileGrid& grid() const noexcept { return grid_; }
  const BufferMap& buffers() const noexcept { return buffers_; }
  MemoryKind memory_kind() const noexcept { return memory_kind_; }
  Uneven uneven() const noexcept { return uneven_; }
  int64_t num_devices() const noexcept { return grid_.positions(); }
  bool is_fully_replicated() const noexcept { return grid_.tiles() == 1; }
  /// Whether data can be placed: there are devices, and no entry is UNCONSTRAINED.
  virtual bool is_concrete() const noexcept { return true; }
  /// Whether all devices belong to this process. Must not be called on an abstract sharding.
  bool is_fully_addressable() const noexcept { return devices_->is_fully_addressable(); }

  /// Throws as ShardDomains does; `operation` begins the message.
  ShardDomains domains(const Dims& shape, std::string_view operation) const;
  /// Whether each device, of any process, holds at least the part of an array of `shape` that `other` gives it. Both
  /// shardings have the same devices in the same order. Throws as ShardDomains does.
  bool covers(const Sharding& other, const Dims& shape, std::string_view operation) const;
  Dims shard_shape(const Dims& shape) const { return domains(shape, "shard_shape").shard_shape(); }

  /// Whether the same devices in the same order hold the same boxes of every array of rank `ndim`, in the same memory
  /// kind. Axis names and types do not count.
  bool is_equivalent_to(const Sharding& other, int64_t ndim) const;

  virtual std::string to_string() const = 0;  // JAX's repr
  virtual size_t hash() const noexcept = 0;
  virtual bool equals(const Sharding& other) const noexcept = 0;
  virtual std::shared_ptr<const Sharding> with_memory_kind(MemoryKind kind) const = 0;

  friend bool operator==(const Sharding& a, const Sharding& b) noexcept { return &a == &b || a.equals(b); }

 protected:
  Sharding(DeviceListRef devices, TileGrid grid, MemoryKind kind, Uneven uneven)
      : devices_(std::move(devices)),
        grid_(std::move(grid)),
        buffers_(devices_ ? BufferMap(grid_, *devices_) : BufferMap()),
        memory_kind_(kind),
        uneven_(uneven) {}
  virtual ShardDomains::Names names(std::string_view operation) const = 0;

 private:
  DeviceListRef devices_;
  TileGrid grid_;
  BufferMap buffers_;
  MemoryKind memory_kind_;
  Uneven uneven_;
};

using ShardingRef = std::shared_ptr<const Sharding>;

/// Whether in each process the tiles that it holds come in complete runs of `run` tiles: with tile t it holds all tiles
/// from t / run * run on. The same in all processes. Example: x sharded over its last dimension only, `run` parts: each
/// process holds complete rows.
bool holds_complete_runs(const TileGrid& grid, const DeviceList& devices, int64_t run);

/// Throws InvalidArgument for a sharding on an AbstractMesh, as `operation` needs devices.
void check_has_devices(const Sharding& sharding, std::string_view operation);

}  // namespace artifex_devices
