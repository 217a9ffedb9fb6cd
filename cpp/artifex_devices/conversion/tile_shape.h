// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/conversion/conversion_plan.h"

namespace artifex_devices {

/// Slabs of the shape `slab` divide a box of a target in row-major order. Where the target is a transpose, each of them
/// may need a little of every row of the sources, so that all slabs together read the sources many times.
///
/// Returns the shape of tiles, of at most as many elements as a slab, that read the sources about once; nothing if the
/// slabs do not cost more than tiles that are written to a scratch file and read from there.
std::optional<Dims> tile_shape(const PlannedArray& target, const IndexDomain& box, const Dims& slab);

}  // namespace artifex_devices
