// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// Whether XLA's partitioner knows no way from one cut of an array to the other but gathering all of it on every device
/// and slicing ("Involuntary full rematerialization"). Parts are the cuts of each dimension, `devices` the mesh's size,
/// a power of 2. Example: on 8 devices from 4 parts of dimension 1 to 2 parts of dimension 0, as P(None, 'x') to
/// P('y', None) on a mesh of x = 4, y = 2.
///
/// The rule was found by compiling, not read in XLA: it gives what jax 0.10.2 logs on CPU devices for all 7,927 pairs
/// of specs on meshes of 4 x 2, 4 x 4, 8 x 2, 2 x 2 x 2, 4 x 2 x 2 and 2 x 2 x 4 that tests/data/xla_resharding.json
/// sums up, of which those of 8 x 2 and 2 x 2 x 4 (2,522) were compiled after it was written. Names and order of axes
/// do not count there. Where an axis had a factor of 3 it was wrong for 74 of 1,516 pairs. Throws InvalidArgument for
/// another number of devices, lists of unequal length and sizes below 1.
bool xla_gathers_everything(int64_t devices, const Dims& source_parts, const Dims& destination_parts);

}  // namespace artifex_devices
