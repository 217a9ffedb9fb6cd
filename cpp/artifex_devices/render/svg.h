// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/mesh.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Stand-alone SVG pictures, readable on light and dark pages, with all text escaped and without scripts or external
/// references. At most `max_cells` cells of a mesh are drawn; a note reports what is omitted.
std::string mesh_svg(const Mesh& mesh, int max_cells = 1024);
std::string sharding_svg(const Sharding& sharding, const Dims& shape);

}  // namespace artifex_devices
