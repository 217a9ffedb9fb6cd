// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/hlo/collectives.h"
#include "artifex_devices/hlo/findings.h"
#include "artifex_devices/hlo/mesh_axes.h"

namespace artifex_devices::hlo {

/// What a text of HLO or StableHLO tells about a program.
struct ProgramText {
  std::string_view source;  // "HLO text" or "StableHLO text"
  std::string name;
  int64_t devices = 0;
  std::string_view backend;  // "cpu", "gpu", "tpu" or empty
  bool is_partitioned = false;
  MeshAxes mesh;
  std::vector<Collective> collectives;
  GroupTable groups;
  std::vector<Finding> findings;
  std::vector<std::string> notes;
};

/// Reads a program. `mesh` names the axes of the devices; where it is empty, they are taken from the text, or found in
/// the groups. Throws InvalidArgument for other text, and for a mesh of another number of devices.
ProgramText read_program(std::string_view text, const MeshAxes& mesh);

}  // namespace artifex_devices::hlo
