// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/hlo/collectives.h"

namespace artifex_devices::hlo {

/// What a module of StableHLO text has. The views are of the text.
struct StablehloModule {
  std::string_view name;
  std::vector<Collective> collectives;
  int64_t devices = 1;
  bool is_cut = false;
};

/// Whether a text begins as a module in MLIR does: "module @name", behind locations and comments.
bool is_stablehlo_text(std::string_view text) noexcept;

/// Reads the collectives of StableHLO text: in functions, loops and manual computations. `mesh` is for groups that are
/// named by axes.
StablehloModule read_stablehlo(std::string_view text, const MeshAxes& mesh, GroupTable& table);

}  // namespace artifex_devices::hlo
