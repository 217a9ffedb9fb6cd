// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/asynchronous.h"

#include <algorithm>
#include <array>

#include "artifex_devices/hlo/collectives.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

/// Whether an operation computes, rather than moves, names or waits.
bool is_computation(std::string_view opcode) noexcept {
  static constexpr std::array<std::string_view, 15> kOthers = {
      "parameter",      "constant",  "tuple",        "get-tuple-element", "bitcast",
      "copy",           "after-all", "partition-id", "replica-id",        "opt-barrier",
      "add-dependency", "domain",    "iota",         "reshape",           "broadcast"};
  if (opcode.ends_with("-start") || opcode.ends_with("-done") || opcode.ends_with("-update")) return false;
  return collective_kind(opcode).empty() && std::find(kOthers.begin(), kOthers.end(), opcode) == kOthers.end();
}

}  // namespace

Asynchronous::Asynchronous(const Module& module, const std::vector<Execution>& executions)
    : module_(module),
      executions_(executions),
      computed_before_(module.instructions.size(), 0),
      end_of_(module.instructions.size(), -1),
      fusions_(module.computations.size(), -1),
      roles_(module.computations.size(), kOther) {
  find_ends();
  find_fusions();
}

void Asynchronous::find_ends() {
  std::vector<int32_t> start_of(module_.instructions.size(), -1);
  int64_t computed = 0;
  for (size_t i = 0; i < module_.instructions.size(); ++i) {
    const Instruction& instruction = module_.instructions[i];
    computed_before_[i] = computed;
    if (is_computation(instruction.opcode)) ++computed;
    if (instruction.opcode.ends_with("-start")) start_of[i] = static_cast<int32_t>(i);
    const bool is_done = instruction.opcode.ends_with("-done");
    if ((!is_done && !instruction.opcode.ends_with("-update")) || instruction.operand_count == 0) continue;
    const int32_t operand = module_.begin_operands(instruction)[0];
    if (operand < 0 || static_cast<size_t>(operand) >= i) continue;
    start_of[i] = start_of[static_cast<size_t>(operand)];
    if (is_done && start_of[i] >= 0) end_of_[static_cast<size_t>(start_of[i])] = static_cast<int32_t>(i);
  }
}

void Asynchronous::find_fusions() {
  for (int32_t i = 0; i < static_cast<int32_t>(module_.instructions.size()); ++i) {
    if (at(i).opcode == "fusion") {
      const int32_t callee = called(module_, at(i), "calls");
      if (callee >= 0) fusions_[static_cast<size_t>(callee)] = i;
    } else if (at(i).opcode == "custom-call") {
      const std::string_view target = attribute(at(i).attributes, "custom_call_target").value_or("");
      Role& role = roles_[static_cast<size_t>(at(i).computation)];
      if (target == "\"AsyncCollectiveStart\"") role = kStart;
      if (target == "\"AsyncCollectiveDone\"") role = kEnd;
    }
  }
  for (int32_t i = 0; i < static_cast<int32_t>(module_.instructions.size()); ++i) {
    if (role(i) == kOther || fusion_of(i) < 0 || collective_kind(at(i).opcode).empty()) continue;
    auto& ends = fused_.try_emplace(channel(i), -1, -1).first->second;
    (role(i) == kStart ? ends.first : ends.second) = fusion_of(i);
  }
}

std::string_view Asynchronous::channel(int32_t collective) const {
  return attribute(at(collective).attributes, "channel_id").value_or("");
}

Asynchronous::Role Asynchronous::role(int32_t collective) const {
  return roles_[static_cast<size_t>(at(collective).computation)];
}

int32_t Asynchronous::fusion_of(int32_t instruction) const {
  return fusions_[static_cast<size_t>(at(instruction).computation)];
}

int32_t Asynchronous::start(int32_t collective) const {
  if (at(collective).opcode.ends_with("-start")) return collective;
  if (role(collective) == kStart && fusion_of(collective) >= 0) return fusion_of(collective);
  return executions_[static_cast<size_t>(at(collective).computation)].async_start;
}

bool Asynchronous::overlaps(int32_t collective) const {
  const int32_t first = start(collective);
  if (first < 0) return false;
  const auto fused = role(collective) == kStart ? fused_.find(channel(collective)) : fused_.end();
  const int32_t last = fused == fused_.end() ? end_of_[static_cast<size_t>(first)] : fused->second.second;
  const int64_t itself = is_computation(at(first).opcode) ? 1 : 0;  // a fusion
  return last > first &&
         computed_before_[static_cast<size_t>(last)] > computed_before_[static_cast<size_t>(first)] + itself;
}

bool Asynchronous::is_copy(int32_t collective) const {
  if (fusion_of(collective) < 0 || role(collective) == kStart) return false;
  const auto fused = fused_.find(channel(collective));
  return fused != fused_.end() && fused->second.first >= 0;
}

bool Asynchronous::is_scatter(int32_t collective) const {
  const Computation& computation = module_.computations[static_cast<size_t>(at(collective).computation)];
  return fusion_of(collective) >= 0 && computation.name.starts_with("all-reduce-scatter");
}

}  // namespace artifex_devices::hlo
