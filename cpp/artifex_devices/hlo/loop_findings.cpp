// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/loop_findings.h"

#include <algorithm>
#include <array>
#include <map>

#include "artifex_devices/hlo/execution_counts.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

/// Whether an operation returns the same for the same operands.
bool is_pure(std::string_view opcode) {
  return !opcode.starts_with("rng") && opcode != "custom-call" && opcode != "infeed" && opcode != "parameter" &&
         opcode != "recv" && opcode != "send" && opcode != "while" && opcode != "conditional" && opcode != "call" &&
         opcode != "fusion" && opcode != "outfeed" && !opcode.ends_with("-start");
}

bool rearranges(const Instruction& instruction) {
  return keeps_elements(instruction) || instruction.opcode == "slice" || instruction.opcode == "concatenate" ||
         instruction.opcode == "get-tuple-element";
}

class Loops {
 public:
  Loops(const Module& module, const ValueGraph& graph, const std::vector<Collective>& collectives)
      : module_(module), graph_(graph), collectives_(collectives), invariant_(module.instructions.size(), kUnknown) {}

  std::vector<LoopFinding> run() {
    for (size_t i = 0; i < collectives_.size(); ++i) {
      const Collective& each = collectives_[i];
      if (each.instruction < 0 || each.groups == 0 || each.bytes == 0) continue;
      const LoopBody* loop = graph_.loop_around(graph_.at(each.instruction).computation);
      if (!loop || loop->root < 0 || loop->parameter < 0) continue;
      const std::optional<int64_t> trips = trip_count(module_, graph_.at(loop->loop));
      if (trips && *trips < 2) continue;
      if (has_invariant_inputs(*loop, each.instruction)) found_.push_back({"invariant in loop", i});
      if (each.kind == "all_to_all") exchanges_[loop->body].push_back(i);
    }
    for (const auto& [body, numbers] : exchanges_) find_resharding(body, numbers);
    return std::move(found_);
  }

 private:
  enum State : uint8_t { kUnknown, kOpen, kFalse, kTrue };

  bool has_invariant_inputs(const LoopBody& loop, int32_t instruction) {
    const std::vector<int32_t> inputs = graph_.inputs(instruction);
    return !inputs.empty() &&
           std::all_of(inputs.begin(), inputs.end(), [&](int32_t input) { return is_invariant(loop, input); });
  }

  /// Whether a value of the body is the same in each pass. Iterative: values are decided after their inputs.
  bool is_invariant(const LoopBody& loop, int32_t value) {
    if (value < 0) return false;
    std::vector<int32_t> stack = {value};
    while (!stack.empty()) {
      const int32_t one = stack.back();
      uint8_t& state = invariant_[static_cast<size_t>(one)];
      if (state == kFalse || state == kTrue) {
        stack.pop_back();
        continue;
      }
      const int64_t element = graph_.state_element(loop, one);
      if (element >= 0) {
        state = graph_.origin(graph_.next_value(loop, element), is_copy) == one ? kTrue : kFalse;
        continue;
      }
      if (!is_pure(graph_.at(one).opcode)) {
        state = kFalse;
        continue;
      }
      const std::vector<int32_t> inputs = graph_.inputs(one);
      if (state == kOpen) {
        const auto is_known = [&](int32_t input) {
          return input >= 0 && invariant_[static_cast<size_t>(input)] == kTrue;
        };
        state = std::all_of(inputs.begin(), inputs.end(), is_known) ? kTrue : kFalse;
        continue;
      }
      state = kOpen;
      for (const int32_t input : inputs) {
        if (input >= 0 && invariant_[static_cast<size_t>(input)] == kUnknown) stack.push_back(input);
      }
    }
    return invariant_[static_cast<size_t>(value)] == kTrue;
  }

  static bool is_copy(const Instruction& instruction) {
    return instruction.opcode == "copy" || instruction.opcode == "bitcast";
  }

  /// An exchange of an element of the state, and one that produces the same element with the same groups.
  void find_resharding(int32_t body, const std::vector<size_t>& numbers) {
    const LoopBody& loop = *graph_.loop_of(body);
    for (const size_t first : numbers) {
      const Collective& entering = collectives_[first];
      if (is_written(entering)) continue;
      const std::vector<int32_t> inputs = graph_.inputs(entering.instruction);
      if (inputs.empty()) continue;
      const auto passes = [&](const Instruction& instruction) {
        return rearranges(instruction) && &instruction != &graph_.at(loop.parameter) &&
               graph_.state_element(loop, number_of(instruction)) < 0;
      };
      const int64_t element = graph_.state_element(loop, graph_.origin(inputs[0], passes));
      if (element < 0) continue;
      const int32_t produced = graph_.origin(graph_.next_value(loop, element), passes);
      for (const size_t second : numbers) {
        const Collective& leaving = collectives_[second];
        if (second == first || leaving.instruction != produced || is_written(leaving)) continue;
        if (leaving.groups != entering.groups) continue;
        found_.push_back({"resharded in loop", first});
        found_.push_back({"resharded in loop", second});
      }
    }
  }

  int32_t number_of(const Instruction& instruction) const {
    return static_cast<int32_t>(&instruction - module_.instructions.data());
  }

  /// Whether the program itself calls lax.all_to_all, rather than the partitioner.
  static bool is_written(const Collective& each) { return each.op_name.ends_with("all_to_all"); }

  const Module& module_;
  const ValueGraph& graph_;
  const std::vector<Collective>& collectives_;
  std::vector<uint8_t> invariant_;
  std::map<int32_t, std::vector<size_t>> exchanges_;
  std::vector<LoopFinding> found_;
};

}  // namespace

bool keeps_elements(const Instruction& instruction) {
  static constexpr std::array<std::string_view, 6> kOpcodes = {"copy",      "bitcast", "reshape",
                                                               "transpose", "convert", "opt-barrier"};
  return std::find(kOpcodes.begin(), kOpcodes.end(), instruction.opcode) != kOpcodes.end();
}

std::vector<LoopFinding> find_in_loops(const Module& module, const ValueGraph& graph,
                                       const std::vector<Collective>& collectives) {
  return Loops(module, graph, collectives).run();
}

}  // namespace artifex_devices::hlo
