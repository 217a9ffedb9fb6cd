// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "artifex_devices/hlo/collectives.h"
#include "artifex_devices/hlo/value_graph.h"

namespace artifex_devices::hlo {

struct LoopFinding {
  std::string_view kind;
  size_t collective = 0;
};

/// Whether an instruction has the elements of its first operand, in another order, shape or type.
bool keeps_elements(const Instruction& instruction);

/// Collectives in loops that do the same in each pass, and exchanges at both ends of a body that cancel out.
std::vector<LoopFinding> find_in_loops(const Module& module, const ValueGraph& graph,
                                       const std::vector<Collective>& collectives);

}  // namespace artifex_devices::hlo
