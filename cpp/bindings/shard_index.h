// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "artifex_devices/partition/shard_domains.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The box of a tile as a tuple of slices: slice(None) for a dimension that is not cut, slice(a, b) for a cut one.
py::tuple index_of_tile(const ShardDomains& domains, int64_t tile);

/// The same of one dimension's cut.
py::object slice_of_cut(const ShardDomains& domains, int64_t dimension, int64_t cut);

}  // namespace artifex_devices::bindings
