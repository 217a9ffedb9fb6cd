// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// A text picture of which devices hold which part of an array of `shape`: rank 1 as a row, rank 2 as a grid, higher
/// ranks as a grid of the two dimensions with most parts and a note. Cells name devices, "CPU 0,1". Equal to JAX's
/// picture where that fits in `max_columns` characters; otherwise cells become narrower, then fewer. No newline at the
/// end. `min_width` is the smallest width of a cell with its frame; `scale` multiplies the height and width of the
/// picture. Throws as Sharding::domains does, and InvalidArgument unless 0 < scale <= 100.
std::string sharding_text(const Sharding& sharding, const Dims& shape, int max_columns = 80, int min_width = 9,
                          double scale = 1.0);

}  // namespace artifex_devices
