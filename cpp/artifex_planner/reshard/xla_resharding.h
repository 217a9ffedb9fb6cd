// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "artifex_devices/base/shape.h"

namespace artifex_devices::planner {

/// Whether XLA's partitioner reshards by gathering the global array on every device and slicing it ("Involuntary full
/// rematerialization"). Parts are the numbers of parts of each dimension, `devices` is the size of the mesh.
/// Example: on 8 devices from 4 parts of dimension 1 to 2 parts of dimension 0, as P(None, 'x') to P('y', None) on a
/// mesh of x = 4, y = 2.
///
/// The rule was found by compiling, not by reading XLA: it matches what jax 0.10.2 logs on CPU devices for all pairs of
/// tests/data/xla_resharding.json, where names and order of axes do not matter. Returns none if a dimension goes from
/// one number of parts to another, neither divides the other (2 to 3), and the rule finds no gather: for some such
/// pairs the rule was wrong. Throws InvalidArgument for lists of unequal length and sizes below 1.
std::optional<bool> xla_gathers_everything(int64_t devices, const Dims& source_parts, const Dims& destination_parts);

}  // namespace artifex_devices::planner
