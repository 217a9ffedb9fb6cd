// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/hlo/module_text.h"

namespace artifex_devices::hlo {

/// How often a computation runs in one execution of the program.
struct Execution {
  std::optional<int64_t> runs;  // nothing: a trip count or the branch of a conditional is not known
  bool is_reached = false;      // from the entry
  bool in_loop = false;
  int32_t async_start = -1;  // instruction that starts the computation, if one does
};

/// A call of a computation, or of a region, by its number.
struct Call {
  int32_t callee = 0;
  std::optional<int64_t> times = 1;  // in one run of the caller
  bool is_loop = false;
};

/// How often each computation runs when `entry` runs once, from the calls of each; -1: none is known to run.
std::vector<Execution> count_runs(const std::vector<std::vector<Call>>& calls, int32_t entry);

/// The passes of a loop whose counter goes from `first` by `step` while it is below `limit`: passes_of(0, 5, 2) is 3.
std::optional<int64_t> passes_of(int64_t first, int64_t limit, int64_t step);

/// Trip count of a `while`: from its backend_config, or from a condition that compares a counter with a constant, where
/// the counter starts at a constant and the body adds one to it.
std::optional<int64_t> trip_count(const Module& module, const Instruction& loop);

/// The computation that an attribute such as `body` names, or -1.
int32_t called(const Module& module, const Instruction& instruction, std::string_view key);

/// The execution of each computation of the module.
std::vector<Execution> count_executions(const Module& module);

}  // namespace artifex_devices::hlo
