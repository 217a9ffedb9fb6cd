// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/value_graph.h"

#include <algorithm>

#include "artifex_devices/hlo/array_shape.h"
#include "artifex_devices/hlo/collectives.h"
#include "artifex_devices/hlo/execution_counts.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

constexpr int kMostPassed = 256;  // instructions that one value is followed through
constexpr size_t kMostUsers = 256;
constexpr int64_t kMostIndexBytes = 1024;

std::optional<int64_t> tuple_index(const Instruction& instruction) {
  const std::optional<std::string_view> index = attribute(instruction.attributes, "index");
  return index ? leading_number(*index) : std::nullopt;
}

}  // namespace

ValueGraph::ValueGraph(const Module& module)
    : module_(module),
      callees_(module.instructions.size(), -1),
      caller_(module.computations.size(), -1),
      loop_number_(module.computations.size(), -1),
      escapes_(module.instructions.size(), false),
      by_device_(module.instructions.size(), false) {
  find_callers();
  find_users();
  find_device_indices();
}

int32_t ValueGraph::operand(const Instruction& instruction, int64_t number) const {
  return number >= 0 && number < instruction.operand_count ? module_.begin_operands(instruction)[number] : -1;
}

void ValueGraph::find_callers() {
  std::vector<int32_t> loop_counts(module_.computations.size(), 0);
  for (int32_t i = 0; i < static_cast<int32_t>(module_.instructions.size()); ++i) {
    const Instruction& instruction = at(i);
    if (instruction.opcode == "while") {
      const int32_t body = called(module_, instruction, "body");
      if (body < 0) continue;
      const Computation& computation = module_.computations[static_cast<size_t>(body)];
      LoopBody loop = {.loop = i, .body = body};
      for (int32_t k = computation.first; k < computation.first + computation.count; ++k) {
        if (at(k).opcode == "parameter") loop.parameter = k;
      }
      if (computation.root >= 0 && at(computation.root).opcode == "tuple") loop.root = computation.root;
      ++loop_counts[static_cast<size_t>(body)];
      loop_number_[static_cast<size_t>(body)] = static_cast<int32_t>(loops_.size());
      loops_.push_back(loop);
      continue;
    }
    const int32_t callee = instruction.opcode == "fusion" ? called(module_, instruction, "calls")
                           : instruction.opcode == "call" ? called(module_, instruction, "to_apply")
                                                          : -1;
    callees_[static_cast<size_t>(i)] = callee;
    if (callee < 0) continue;
    int32_t& caller = caller_[static_cast<size_t>(callee)];
    caller = caller == -1 && callee != instruction.computation ? i : -2;
  }
  for (size_t i = 0; i < loop_counts.size(); ++i) {
    if (loop_counts[i] > 1) loop_number_[i] = -1;
  }
}

int32_t ValueGraph::source(int32_t instruction) const {
  if (instruction < 0 || sources_.empty()) return instruction;
  return sources_[static_cast<size_t>(instruction)];
}

bool ValueGraph::is_seen_through(int32_t index) const {
  const Instruction& instruction = at(index);
  const int32_t callee = callees_[static_cast<size_t>(index)];
  if (callee >= 0) {
    return caller_[static_cast<size_t>(callee)] == index && module_.computations[static_cast<size_t>(callee)].root >= 0;
  }
  const int32_t caller = caller_[static_cast<size_t>(instruction.computation)];
  const bool is_inside = caller >= 0 && is_seen_through(caller);
  if (instruction.opcode == "parameter") return is_inside;
  if (instruction.opcode == "tuple") {
    return is_inside && module_.computations[static_cast<size_t>(instruction.computation)].root == index;
  }
  return false;
}

void ValueGraph::find_users() {
  const auto count = static_cast<int32_t>(module_.instructions.size());
  std::vector<int32_t> sources(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    int32_t value = i;
    for (int step = 0; step < kMostPassed && value >= 0; ++step) {
      const Instruction& instruction = at(value);
      int32_t next = value;
      if (instruction.opcode == "get-tuple-element") {
        const int32_t tuple = operand(instruction, 0);
        const int64_t index = tuple_index(instruction).value_or(-1);
        if (tuple >= 0 && at(tuple).opcode == "tuple") next = operand(at(tuple), index);
        const int32_t callee = tuple < 0 ? -1 : callees_[static_cast<size_t>(tuple)];
        if (callee >= 0 && is_seen_through(tuple)) {
          const int32_t root = module_.computations[static_cast<size_t>(callee)].root;
          if (at(root).opcode == "tuple") next = operand(at(root), index);
        }
      } else if (is_seen_through(value)) {
        const int32_t callee = callees_[static_cast<size_t>(value)];
        if (callee >= 0) {
          const int32_t root = module_.computations[static_cast<size_t>(callee)].root;
          if (at(root).opcode != "tuple") next = root;
        } else if (instruction.opcode == "parameter") {
          const int32_t caller = caller_[static_cast<size_t>(instruction.computation)];
          next = operand(at(caller), leading_number(trimmed(instruction.arguments)).value_or(-1));
        }
      }
      if (next == value) break;
      value = next;
    }
    sources[static_cast<size_t>(i)] = value;
  }
  sources_ = std::move(sources);
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < count; ++i) {
    if (is_seen_through(i) || source(i) != i) continue;
    for (const int32_t input : inputs(i)) {
      if (input >= 0 && input != i) edges.emplace_back(input, i);
    }
  }
  for (const Computation& computation : module_.computations) {
    const int32_t caller = caller_[static_cast<size_t>(&computation - module_.computations.data())];
    if (computation.root < 0 || (caller >= 0 && is_seen_through(caller))) continue;
    const int32_t root = source(computation.root);
    if (root >= 0) escapes_[static_cast<size_t>(root)] = true;
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  first_user_.assign(static_cast<size_t>(count) + 1, 0);
  for (const auto& [from, to] : edges) ++first_user_[static_cast<size_t>(from) + 1];
  for (size_t i = 1; i < first_user_.size(); ++i) first_user_[i] += first_user_[i - 1];
  for (const auto& [from, to] : edges) users_.push_back(to);
}

void ValueGraph::find_device_indices() {
  std::vector<int32_t> stack;
  for (int32_t i = 0; i < static_cast<int32_t>(module_.instructions.size()); ++i) {
    if (at(i).opcode == "partition-id" || at(i).opcode == "replica-id") stack.push_back(i);
  }
  // An index that is computed in front of a loop is an element of its state.
  std::vector<std::pair<int32_t, int32_t>> into_loops;
  for (int32_t i = 0; i < static_cast<int32_t>(module_.instructions.size()); ++i) {
    if (at(i).opcode != "get-tuple-element") continue;
    const LoopBody* loop = loop_of(at(i).computation);
    if (!loop || operand(at(i), 0) != loop->parameter) continue;
    const int32_t first = initial_value(*loop, tuple_index(at(i)).value_or(-1));
    if (first >= 0) into_loops.emplace_back(first, i);
  }
  std::sort(into_loops.begin(), into_loops.end());
  while (!stack.empty()) {
    const int32_t value = stack.back();
    stack.pop_back();
    if (by_device_[static_cast<size_t>(value)]) continue;
    by_device_[static_cast<size_t>(value)] = true;
    for (const int32_t user : users(value)) {
      if (at(user).opcode == "tuple" || !collective_kind(at(user).opcode).empty()) continue;
      const std::optional<int64_t> size = bytes_of(arrays_in_shape(at(user).shape));
      if (size && *size <= kMostIndexBytes) stack.push_back(user);
    }
    for (auto at = std::lower_bound(into_loops.begin(), into_loops.end(), std::pair(value, int32_t{-1}));
         at != into_loops.end() && at->first == value; ++at) {
      stack.push_back(at->second);
    }
  }
}

std::vector<int32_t> ValueGraph::inputs(int32_t instruction) const {
  const Instruction& of = at(instruction);
  std::vector<int32_t> found;
  for (int32_t i = 0; i < of.operand_count; ++i) found.push_back(source(module_.begin_operands(of)[i]));
  return found;
}

std::span<const int32_t> ValueGraph::users(int32_t source) const {
  const auto first = static_cast<size_t>(first_user_[static_cast<size_t>(source)]);
  const auto last = static_cast<size_t>(first_user_[static_cast<size_t>(source) + 1]);
  return std::span(users_).subspan(first, last - first);
}

const LoopBody* ValueGraph::loop_of(int32_t computation) const {
  const int32_t number = loop_number_[static_cast<size_t>(computation)];
  return number < 0 ? nullptr : &loops_[static_cast<size_t>(number)];
}

const LoopBody* ValueGraph::loop_around(int32_t computation) const {
  for (int step = 0; step < kMostPassed; ++step) {
    if (const LoopBody* loop = loop_of(computation)) return loop;
    const int32_t caller = caller_[static_cast<size_t>(computation)];
    if (caller < 0) return nullptr;
    computation = at(caller).computation;
  }
  return nullptr;
}

int64_t ValueGraph::state_element(const LoopBody& loop, int32_t source) const {
  if (source < 0 || at(source).opcode != "get-tuple-element" || operand(at(source), 0) != loop.parameter) return -1;
  return tuple_index(at(source)).value_or(-1);
}

int32_t ValueGraph::initial_value(const LoopBody& loop, int64_t element) const {
  const int32_t state = source(operand(at(loop.loop), 0));
  return state >= 0 && at(state).opcode == "tuple" ? source(operand(at(state), element)) : -1;
}

int32_t ValueGraph::next_value(const LoopBody& loop, int64_t element) const {
  return loop.root < 0 ? -1 : source(operand(at(loop.root), element));
}

int32_t ValueGraph::origin(int32_t source, const std::function<bool(const Instruction&)>& passes) const {
  for (int step = 0; step < kMostPassed && source >= 0 && passes(at(source)); ++step) {
    const int32_t next = this->source(operand(at(source), 0));
    if (next == source) break;
    source = next;
  }
  return source;
}

std::optional<std::vector<int32_t>> ValueGraph::final_users(
    int32_t source, const std::function<bool(const Instruction&)>& passes) const {
  std::vector<int32_t> found, stack = {source};
  std::vector<int32_t> seen;
  while (!stack.empty()) {
    const int32_t value = stack.back();
    stack.pop_back();
    if (escapes(value)) return std::nullopt;
    for (const int32_t user : users(value)) {
      if (std::find(seen.begin(), seen.end(), user) != seen.end()) continue;
      if (seen.size() == kMostUsers) return std::nullopt;
      seen.push_back(user);
      (passes(at(user)) ? stack : found).push_back(user);
    }
  }
  return found;
}

}  // namespace artifex_devices::hlo
