// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "artifex_devices/device/device_list.h"
#include "artifex_devices/partition/shard_domains.h"
#include "artifex_devices/sharding/shards.h"

namespace artifex_devices {

/// Placement of arrays of any shape on devices. Base class of NamedSharding and SingleDeviceSharding; immutable,
/// shared.
class Sharding {
 public:
  virtual ~Sharding() = default;
  Sharding(const Sharding&) = delete;
  Sharding& operator=(const Sharding&) = delete;

  /// Devices by position. Null for an abstract sharding: it computes shapes but cannot hold data.
  const DeviceListRef& devices() const noexcept { return devices_; }
  bool is_abstract() const noexcept { return devices_ == nullptr; }
  const TileGrid& grid() const noexcept { return grid_; }
  const BufferMap& buffers() const noexcept { return buffers_; }
  /// The buffer that `position` uses; none in another process.
  BufferId buffer_at(Position position) const noexcept { return buffers_.buffer(grid_, position); }
  /// The first position that uses the buffer.
  Position position_of(BufferId buffer) const noexcept { return buffers_.position(grid_, buffer); }
  Device& device(Position position) const noexcept { return *(*devices_)[position]; }
  /// The device of that position.
  Device& device(BufferId buffer) const noexcept { return device(position_of(buffer)); }
  MemoryKind memory_kind() const noexcept { return memory_kind_; }
  Uneven uneven() const noexcept { return uneven_; }
  int64_t num_devices() const noexcept { return grid_.positions(); }
  IdRange<Position> positions() const noexcept { return IdRange<Position>(grid_.positions()); }
  bool is_fully_replicated() const noexcept { return grid_.tiles() == 1; }
  /// Whether data can be placed: there are devices, and no entry is UNCONSTRAINED.
  virtual bool is_concrete() const noexcept { return true; }
  /// Whether all devices belong to this process. Must not be called on an abstract sharding.
  bool is_fully_addressable() const noexcept { return devices_->is_fully_addressable(); }

  /// Throws as ShardDomains does; `operation` begins the message.
  ShardDomains domains(const Dims& shape, std::string_view operation) const;
  /// domains(), and the buffers of this process that hold them: `for (const Shard& shard : sharding.shards(shape,
  /// ...))`.
  Shards shards(const Dims& shape, std::string_view operation) const {
    return {grid_, shape, uneven_, names(operation), buffers_};
  }
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

/// Throws InvalidArgument for a sharding on an AbstractMesh, as `operation` needs devices.
void check_has_devices(const Sharding& sharding, std::string_view operation);

}  // namespace artifex_devices
