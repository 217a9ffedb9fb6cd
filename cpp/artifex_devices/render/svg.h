// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/sharding/mesh.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// Stand-alone SVG pictures, readable on light and dark pages; all text is escaped; no script, no outside reference.
std::string mesh_svg(const Mesh& mesh);
std::string sharding_svg(const Sharding& sharding, const Dims& shape);

}  // namespace artifex_devices
