// SPDX-License-Identifier: Apache-2.0
// Which instructions compute from which values, seen through fusions, calls and tuples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "artifex_devices/hlo/module_text.h"

namespace artifex_devices::hlo {

/// A loop of the module: its `while` and the parts of its body.
struct LoopBody {
  int32_t loop = -1;       // instruction
  int32_t body = -1;       // computation
  int32_t parameter = -1;  // instruction: the state
  int32_t root = -1;       // instruction: a tuple, or -1
};

class ValueGraph {
 public:
  explicit ValueGraph(const Module& module);

  /// The instruction that computes the value of another: the root of a fusion, the operand for a parameter of a fusion,
  /// the element of a tuple. An instruction of a computation with several callers is its own source; -1 stays.
  int32_t source(int32_t instruction) const;

  /// The sources of the operands; -1 where the text lacks one.
  std::vector<int32_t> inputs(int32_t instruction) const;

  /// The instructions that have this source as an input.
  std::span<const int32_t> users(int32_t source) const;

  /// Whether a value is the result of the program or of a computation that is not seen through.
  bool escapes(int32_t source) const { return escapes_[static_cast<size_t>(source)]; }

  /// The loop whose body a computation is, or null.
  const LoopBody* loop_of(int32_t computation) const;
  /// The same, also where the body calls the computation.
  const LoopBody* loop_around(int32_t computation) const;
  std::span<const LoopBody> loops() const { return loops_; }

  /// The number of the element of a loop's state that a source is, or -1.
  int64_t state_element(const LoopBody& loop, int32_t source) const;
  /// The source of the value with which an element of the state begins, or -1; and of that after one pass.
  int32_t initial_value(const LoopBody& loop, int64_t element) const;
  int32_t next_value(const LoopBody& loop, int64_t element) const;

  /// Follows a source back through instructions that `passes` accepts, by their first input.
  int32_t origin(int32_t source, const std::function<bool(const Instruction&)>& passes) const;

  /// The instructions that use a value, seen through those that `passes` accepts; nothing where it escapes or has more
  /// than 256 uses.
  std::optional<std::vector<int32_t>> final_users(int32_t source,
                                                  const std::function<bool(const Instruction&)>& passes) const;

  /// Whether a value depends on the number of the device, as an index or offset does.
  bool depends_on_device(int32_t source) const { return source >= 0 && by_device_[static_cast<size_t>(source)]; }

  const Instruction& at(int32_t instruction) const { return module_.instructions[static_cast<size_t>(instruction)]; }

 private:
  int32_t operand(const Instruction& instruction, int64_t number) const;
  bool is_seen_through(int32_t instruction) const;
  void find_callers();
  void find_users();
  void find_device_indices();

  const Module& module_;
  std::vector<int32_t> callees_;  // of each fusion and call; -1: none
  std::vector<int32_t> caller_;   // of each computation: a fusion or call; -1: none; -2: several
  std::vector<int32_t> loop_number_;
  std::vector<LoopBody> loops_;
  std::vector<int32_t> sources_;
  std::vector<int32_t> first_user_, users_;
  std::vector<bool> escapes_, by_device_;
};

}  // namespace artifex_devices::hlo
