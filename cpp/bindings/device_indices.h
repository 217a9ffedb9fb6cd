// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/partition/shard_domains.h"
#include "artifex_devices/sharding/sharding.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The box of a tile as a tuple of slices: slice(None) for a dimension that is not sharded, slice(a, b) for a sharded
/// one.
py::tuple index_of_tile(const ShardDomains& domains, TileId tile);

/// The slice of one part of one dimension.
py::object slice_of_cut(const ShardDomains& domains, int64_t dimension, int64_t cut);

/// Returns {device: tuple of slices} of all devices in mesh order, as a new dict. Maps of few devices are cached and
/// copied.
py::dict devices_indices_map(const std::shared_ptr<Sharding>& self, py::handle global_shape);

/// Returns the same for the devices of this process.
py::dict addressable_indices_map(const std::shared_ptr<Sharding>& self, py::handle global_shape);

/// Returns the part of one device, in the same time for any number of devices. Throws InvalidArgument for a device that
/// the sharding does not include.
py::tuple device_index(const Sharding& self, py::handle device, py::handle global_shape);

/// Returns a new set of the devices.
py::set device_set(const DeviceListRef& devices);

/// Adds fast paths to `shard_shape`, the index maps and `device_set`.
void add_sharding_fast_paths(py::object cls);

/// Sets the class NamedSharding, the only one whose `shard_shape` has a fast path.
void set_named_sharding_class(py::object cls);

}  // namespace artifex_devices::bindings
