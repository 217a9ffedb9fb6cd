// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// A mesh as a plain-text table: rows are the first axis, columns the rest (a mesh of one axis is a single row), cells
/// the devices' numbers. At most `max_cells` cells are drawn; what is left out is said. No line end at the end.
std::string mesh_text(const Mesh& mesh, int max_cells = 256);

}  // namespace artifex_devices
