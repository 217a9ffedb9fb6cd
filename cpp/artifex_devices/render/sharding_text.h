// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// A picture in characters of which devices hold which part of an array of `shape`: rank 1 as a row, rank 2 as a grid,
/// higher ranks as the grid of the two dimensions that are cut most, with a line that says so. Cells name devices,
/// "CPU 0,1". As JAX's where that fits into `max_columns` characters; cells get narrower, then fewer, where not. No
/// line end at the end. `min_width` is the least width of a cell with its frame, `scale` 2 doubles height and width of
/// the whole. Throws as Sharding::domains, and InvalidArgument for a scale that is not above 0 and at most 100.
std::string sharding_text(const Sharding& sharding, const Dims& shape, int max_columns = 80, int min_width = 9,
                          double scale = 1.0);

}  // namespace artifex_devices
