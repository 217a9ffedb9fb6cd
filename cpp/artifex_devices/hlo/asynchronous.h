// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/hlo/execution_counts.h"
#include "artifex_devices/hlo/module_text.h"

namespace artifex_devices::hlo {

/// Starts and ends of collectives: `all-gather-start` and `-done`; `async-start`, whose computation has the collective;
/// and, for TPUs, fusions that start, continue and end a collective. Each of these fusions holds a copy of it, with the
/// same channel. A fusion "all-reduce-scatter" holds a sum and a slice, which is a reduce-scatter.
class Asynchronous {
 public:
  Asynchronous(const Module& module, const std::vector<Execution>& executions);

  /// The instruction that starts a collective, or -1 for a synchronous one.
  int32_t start(int32_t collective) const;
  /// Whether there is computation between the start and the end of a collective.
  bool overlaps(int32_t collective) const;
  /// Whether a collective is a copy in a fusion that continues or ends it.
  bool is_copy(int32_t collective) const;
  bool is_scatter(int32_t collective) const;
  /// The fusion that holds an instruction, or -1.
  int32_t fusion_of(int32_t instruction) const;

 private:
  enum Role : uint8_t { kOther, kStart, kEnd };

  void find_ends();
  void find_fusions();
  const Instruction& at(int32_t instruction) const { return module_.instructions[static_cast<size_t>(instruction)]; }
  std::string_view channel(int32_t collective) const;
  Role role(int32_t collective) const;

  const Module& module_;
  const std::vector<Execution>& executions_;
  std::vector<int64_t> computed_before_;                           // instructions that compute, before each
  std::vector<int32_t> end_of_;                                    // of each start; -1: none
  std::vector<int32_t> fusions_;                                   // that call each computation
  std::vector<Role> roles_;                                        // of each computation
  std::map<std::string_view, std::pair<int32_t, int32_t>> fused_;  // start and end, by channel
};

}  // namespace artifex_devices::hlo
