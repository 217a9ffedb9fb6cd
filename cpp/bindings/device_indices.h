// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "artifex_devices/partition/shard_domains.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The box of a tile as a tuple of slices: slice(None) for a dimension that is not cut, slice(a, b) for a cut one.
py::tuple index_of_tile(const ShardDomains& domains, int64_t tile);

/// The same of one dimension's cut.
py::object slice_of_cut(const ShardDomains& domains, int64_t dimension, int64_t cut);

/// {device: tuple of slices} of all devices, in mesh order. A dict of its own each time; what was worked out for small
/// numbers of devices is kept and copied.
py::dict devices_indices_map(const std::shared_ptr<Sharding>& self, py::handle global_shape);

/// The same of the devices of this process.
py::dict addressable_indices_map(const std::shared_ptr<Sharding>& self, py::handle global_shape);

/// The part of one device, in the same time on any number of devices. Throws InvalidArgument for one that is not in it.
py::tuple device_index(const Sharding& self, py::handle device, py::handle global_shape);

/// A new set of the devices.
py::set device_set(const DeviceListRef& devices);

/// Puts short cuts before `shard_shape` and what asks for devices.
void add_sharding_fast_paths(py::object cls);

/// Tells which class NamedSharding is: only its shard shapes have a short cut.
void set_named_sharding_class(py::object cls);

}  // namespace artifex_devices::bindings
