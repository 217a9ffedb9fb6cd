// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/sharding/mesh.h"

namespace artifex_devices {

/// A mesh as a plain-text table of device ids: rows are the first axis, columns all other axes (a mesh of one axis is a
/// single row). At most `max_cells` cells are drawn; a note reports what is omitted. No newline at the end.
std::string mesh_text(const Mesh& mesh, int max_cells = 256);

}  // namespace artifex_devices
