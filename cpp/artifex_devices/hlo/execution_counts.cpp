// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/execution_counts.h"

#include <array>
#include <utility>

#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

constexpr int kMostSteps = 64;

const Instruction& at(const Module& module, int32_t index) { return module.instructions[static_cast<size_t>(index)]; }

const Computation& computation(const Module& module, int32_t index) {
  return module.computations[static_cast<size_t>(index)];
}

int32_t operand(const Module& module, const Instruction& instruction, int32_t number) {
  return number < instruction.operand_count ? module.begin_operands(instruction)[number] : -1;
}

/// Follows copies back to the instruction whose value an index has; -1 stays.
int32_t without_copies(const Module& module, int32_t index) {
  for (int step = 0; index >= 0 && step < kMostSteps; ++step) {
    const Instruction& instruction = at(module, index);
    if (instruction.opcode != "copy" && instruction.opcode != "bitcast") return index;
    index = operand(module, instruction, 0);
  }
  return index;
}

std::optional<int64_t> constant_value(const Module& module, int32_t index) {
  index = without_copies(module, index);
  if (index < 0 || at(module, index).opcode != "constant") return std::nullopt;
  const std::string_view text = trimmed(at(module, index).arguments);
  if (text.starts_with('-')) {
    const std::optional<int64_t> value = leading_number(text.substr(1));
    return value ? std::optional(-*value) : std::nullopt;
  }
  return leading_number(text);
}

/// The element of the loop's state that an instruction is, or -1.
int64_t element_of_state(const Module& module, int32_t index) {
  index = without_copies(module, index);
  if (index < 0 || at(module, index).opcode != "get-tuple-element") return -1;
  const int32_t tuple = operand(module, at(module, index), 0);
  if (tuple < 0 || at(module, tuple).opcode != "parameter") return -1;
  const std::optional<std::string_view> number = attribute(at(module, index).attributes, "index");
  return number ? leading_number(*number).value_or(-1) : -1;
}

/// An operation of two operands, seen through a fusion that holds only it.
struct Pair {
  const Instruction* operation = nullptr;
  int32_t first = -1, second = -1;  // in the computation that calls the fusion
};

Pair binary_operation(const Module& module, int32_t index) {
  index = without_copies(module, index);
  if (index < 0) return {};
  const Instruction& outer = at(module, index);
  if (outer.opcode != "fusion" && outer.opcode != "call") {
    return {&outer, operand(module, outer, 0), operand(module, outer, 1)};
  }
  const int32_t callee = called(module, outer, outer.opcode == "fusion" ? "calls" : "to_apply");
  if (callee < 0 || computation(module, callee).root < 0) return {};
  const Instruction& inner = at(module, computation(module, callee).root);
  const auto outside = [&](int32_t number) -> int32_t {
    const int32_t inside = without_copies(module, operand(module, inner, number));
    if (inside < 0 || at(module, inside).opcode != "parameter") return inside;
    const std::optional<int64_t> parameter = leading_number(trimmed(at(module, inside).arguments));
    return parameter && *parameter < outer.operand_count ? operand(module, outer, static_cast<int32_t>(*parameter))
                                                         : -1;
  };
  return {&inner, outside(0), outside(1)};
}

std::optional<int64_t> known_trip_count(std::string_view attributes) {
  const size_t key = attributes.find("known_trip_count");
  if (key == kNone) return std::nullopt;
  const size_t digit = attributes.find_first_of("0123456789}", key);
  return digit == kNone ? std::nullopt : leading_number(attributes.substr(digit));
}

void append_calls(const Module& module, int32_t index, std::vector<Call>& calls) {
  static constexpr std::array<std::string_view, 3> kOnce = {"calls", "to_apply", "called_computations"};
  static constexpr std::array<std::string_view, 3> kBranches = {"branch_computations", "true_computation",
                                                                "false_computation"};
  const Instruction& instruction = at(module, index);
  if (instruction.opcode == "while") {
    const std::optional<int64_t> trips = trip_count(module, instruction);
    calls.push_back({called(module, instruction, "body"), trips, true});
    calls.push_back({called(module, instruction, "condition"), trips ? std::optional(*trips + 1) : trips, true});
    return;
  }
  const bool is_branch = instruction.opcode == "conditional";
  const bool is_call = instruction.opcode == "fusion" || instruction.opcode == "call" ||
                       instruction.opcode == "custom-call" || instruction.opcode == "async-start";
  if (!is_branch && !is_call) return;
  for (const std::string_view key : is_branch ? kBranches : kOnce) {
    const std::optional<std::string_view> value = attribute(instruction.attributes, key);
    if (!value) continue;
    for (std::string_view name : split_list(inside_brackets(*value))) {
      if (name.starts_with('%')) name.remove_prefix(1);
      const auto found = module.computation_of.find(name);
      if (found == module.computation_of.end()) continue;
      calls.push_back({found->second, is_branch ? std::nullopt : std::optional<int64_t>(1), false});
    }
  }
}

}  // namespace

int32_t called(const Module& module, const Instruction& instruction, std::string_view key) {
  std::optional<std::string_view> name = attribute(instruction.attributes, key);
  if (!name) return -1;
  if (name->starts_with('%')) name->remove_prefix(1);
  const auto found = module.computation_of.find(*name);
  return found == module.computation_of.end() ? -1 : found->second;
}

std::optional<int64_t> passes_of(int64_t first, int64_t limit, int64_t step) {
  if (step < 1) return std::nullopt;
  if (first >= limit) return 0;
  const uint64_t distance = static_cast<uint64_t>(limit) - static_cast<uint64_t>(first);
  const uint64_t passes = (distance - 1) / static_cast<uint64_t>(step) + 1;
  return passes > static_cast<uint64_t>(kLargestNumber) ? std::nullopt : std::optional(static_cast<int64_t>(passes));
}

std::optional<int64_t> trip_count(const Module& module, const Instruction& loop) {
  if (const std::optional<int64_t> known = known_trip_count(loop.attributes)) return known;
  const int32_t condition = called(module, loop, "condition"), body = called(module, loop, "body");
  if (condition < 0 || body < 0) return std::nullopt;
  const Pair test = binary_operation(module, computation(module, condition).root);
  if (!test.operation || test.operation->opcode != "compare") return std::nullopt;
  const std::string_view direction = attribute(test.operation->attributes, "direction").value_or("");
  int64_t element = element_of_state(module, test.first);
  std::optional<int64_t> limit = constant_value(module, test.second);
  if (direction == "GT") {  // limit > counter
    element = element_of_state(module, test.second);
    limit = constant_value(module, test.first);
  } else if (direction != "LT") {
    return std::nullopt;
  }
  const int32_t root = computation(module, body).root;
  const int32_t start = without_copies(module, operand(module, loop, 0));
  if (element < 0 || !limit || root < 0 || start < 0) return std::nullopt;
  if (at(module, root).opcode != "tuple" || at(module, start).opcode != "tuple") return std::nullopt;
  const auto number = static_cast<int32_t>(element);
  const std::optional<int64_t> first = constant_value(module, operand(module, at(module, start), number));
  const Pair step = binary_operation(module, operand(module, at(module, root), number));
  if (!first || !step.operation || step.operation->opcode != "add") return std::nullopt;
  std::optional<int64_t> by;
  if (element_of_state(module, step.first) == element) by = constant_value(module, step.second);
  if (element_of_state(module, step.second) == element) by = constant_value(module, step.first);
  if (!by || *by < 1) return std::nullopt;
  return passes_of(*first, *limit, *by);
}

std::vector<Execution> count_runs(const std::vector<std::vector<Call>>& calls, int32_t entry) {
  const size_t count = calls.size();
  std::vector<Execution> found(count);
  if (entry < 0) return found;
  // Reached computations, and how many of their calls are still to be counted.
  std::vector<int64_t> open_calls(count, 0);
  std::vector<int32_t> stack = {entry};
  found[static_cast<size_t>(entry)].is_reached = true;
  while (!stack.empty()) {
    const int32_t caller = stack.back();
    stack.pop_back();
    for (const Call& call : calls[static_cast<size_t>(caller)]) {
      ++open_calls[static_cast<size_t>(call.callee)];
      Execution& callee = found[static_cast<size_t>(call.callee)];
      if (std::exchange(callee.is_reached, true)) continue;
      callee.runs = 0;
      stack.push_back(call.callee);
    }
  }
  found[static_cast<size_t>(entry)].runs = 1;
  if (open_calls[static_cast<size_t>(entry)] > 0) return found;  // a circle
  stack.push_back(entry);
  while (!stack.empty()) {
    const int32_t number = stack.back();
    stack.pop_back();
    const Execution caller = found[static_cast<size_t>(number)];
    for (const Call& call : calls[static_cast<size_t>(number)]) {
      Execution& callee = found[static_cast<size_t>(call.callee)];
      callee.in_loop |= caller.in_loop || call.is_loop;
      const bool is_known = callee.runs && caller.runs && call.times;
      if (is_known && (*call.times == 0 || *caller.runs <= (kLargestNumber - *callee.runs) / *call.times)) {
        callee.runs = *callee.runs + *caller.runs * *call.times;
      } else {
        callee.runs.reset();
      }
      if (--open_calls[static_cast<size_t>(call.callee)] == 0) stack.push_back(call.callee);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (open_calls[i] > 0) found[i].runs.reset();
  }
  return found;
}

std::vector<Execution> count_executions(const Module& module) {
  std::vector<std::vector<Call>> calls(module.computations.size());
  std::vector<int32_t> async_starts(module.computations.size(), -1);
  for (int32_t i = 0; i < static_cast<int32_t>(module.instructions.size()); ++i) {
    const Instruction& instruction = at(module, i);
    std::vector<Call>& of_caller = calls[static_cast<size_t>(instruction.computation)];
    const size_t before = of_caller.size();
    append_calls(module, i, of_caller);
    std::erase_if(of_caller, [](const Call& call) { return call.callee < 0; });
    if (instruction.opcode != "async-start") continue;
    for (size_t k = before; k < of_caller.size(); ++k) async_starts[static_cast<size_t>(of_caller[k].callee)] = i;
  }
  std::vector<Execution> found = count_runs(calls, module.entry);
  for (size_t i = 0; i < found.size(); ++i) found[i].async_start = async_starts[i];
  return found;
}

}  // namespace artifex_devices::hlo
