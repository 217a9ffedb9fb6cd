// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/findings.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "artifex_devices/hlo/array_shape.h"
#include "artifex_devices/hlo/execution_counts.h"
#include "artifex_devices/hlo/loop_findings.h"
#include "artifex_devices/hlo/source_place.h"
#include "artifex_devices/hlo/text_scan.h"
#include "artifex_devices/hlo/value_graph.h"

namespace artifex_devices::hlo {
namespace {

bool is_wait(std::string_view opcode) { return opcode.ends_with("-done") || opcode.ends_with("-update"); }

bool is_arithmetic(std::string_view opcode) {
  static constexpr std::array<std::string_view, 14> kOpcodes = {
      "add",  "subtract", "multiply", "divide",  "exponential", "log",    "tanh",
      "sine", "cosine",   "maximum",  "minimum", "compare",     "reduce", "select"};
  return std::find(kOpcodes.begin(), kOpcodes.end(), opcode) != kOpcodes.end();
}

/// Forward, backward or computed again: a second gather of a weight is right where this differs.
int pass_of(std::string_view op_name) {
  if (op_name.find("rematted_computation") != kNone) return 2;
  return op_name.find("transpose(") != kNone ? 1 : 0;
}

std::string_view last_part(std::string_view op_name) {
  return op_name.substr(op_name.rfind('/') + 1);  // all of it without a slash
}

bool has_type(const Instruction& instruction, std::string_view type) {
  return instruction.shape.starts_with(type) && instruction.shape.substr(type.size()).starts_with('[');
}

bool is_of_two_bytes(const Instruction& instruction) {
  return has_type(instruction, "bf16") || has_type(instruction, "f16");
}

class Search {
 public:
  Search(const Module& module, const std::vector<Collective>& collectives, const GroupTable& table, int64_t devices,
         std::string_view backend)
      : module_(module),
        collectives_(collectives),
        table_(table),
        devices_(devices),
        backend_(backend),
        graph_(module) {}

  std::vector<Finding> run() {
    for (size_t i = 0; i < collectives_.size(); ++i) {
      const Collective& each = collectives_[i];
      if (each.instruction < 0) continue;
      if (is_of_one_device(each)) {
        if (each.kind != "collective_permute") add("axis of size 1", i, each.operand_bytes);
        continue;
      }
      if (each.groups == 0 || each.bytes == 0) continue;
      if (each.kind == "all_gather") find_slices(i), find_replicated(i), remember_gather(i);
      if (each.kind == "all_reduce") find_slices(i);
      find_wide_message(i);
    }
    for (const LoopFinding& each : find_in_loops(module_, graph_, collectives_))
      add(each.kind, each.collective, collectives_[each.collective].bytes.value_or(0));
    return std::move(found_);
  }

 private:
  void add(std::string_view kind, size_t number, int64_t bytes, std::string other = {}, bool is_of_compiler = false) {
    found_.push_back({kind, number, bytes, std::move(other), is_of_compiler});
  }

  const Instruction& at(int32_t instruction) const { return graph_.at(instruction); }

  int64_t size_of(int32_t value) const { return bytes_of(arrays_in_shape(at(value).shape)).value_or(0); }

  bool is_of_one_device(const Collective& each) const {
    return !each.has_pairs && table_.summary(each.groups).largest == 1;
  }

  /// A slice whose offset depends on the device.
  bool is_device_slice(int32_t instruction) const {
    if (at(instruction).opcode != "dynamic-slice") return false;
    const std::vector<int32_t> inputs = graph_.inputs(instruction);
    return std::any_of(inputs.begin() + (inputs.empty() ? 0 : 1), inputs.end(),
                       [&](int32_t input) { return graph_.depends_on_device(input); });
  }

  /// Gathers and sums of which each device uses only its slice.
  void find_slices(size_t number) {
    const Collective& each = collectives_[number];
    const auto passes = [](const Instruction& instruction) {
      return keeps_elements(instruction) || is_wait(instruction.opcode) || instruction.opcode == "get-tuple-element";
    };
    const std::optional<std::vector<int32_t>> users = graph_.final_users(each.instruction, passes);
    const auto slices = [&](int32_t user) { return is_device_slice(user); };
    if (!users || users->empty() || !std::all_of(users->begin(), users->end(), slices)) return;
    if (each.kind == "all_gather") {
      add("rematerialization", number, each.bytes.value_or(0), std::string(at(users->front()).name));
      return;
    }
    // Of its own: a compiler may choose both itself, and before the schedule it may still join them.
    const std::string op_name = place_of(module_, at(each.instruction)).op_name;
    const std::string_view name = last_part(op_name);
    const bool is_written = name == "psum" || name == "psum_invariant" || name == "psum2";
    const bool is_final = attribute(module_.attributes, "is_scheduled") == "true";
    const bool is_by_compiler = !is_final || backend_ == "cpu" || op_name.empty() || name.find("scatter") != kNone;
    add("all-reduce then slice", number, each.bytes.value_or(0), std::string(at(users->front()).name),
        !is_written && is_by_compiler);
  }

  /// Activations that are gathered to all devices, each of which then computes all of the next values; stacks of
  /// weights that are gathered in front of the loop that uses one layer in each pass.
  void find_replicated(size_t number) {
    const Collective& each = collectives_[number];
    const int32_t whole = gathered_value(each.instruction);
    if (each.in_loop || whole < 0) return;
    const int64_t size = size_of(whole);
    if (is_stack_of_layers(whole)) return add("replicated temporary", number, size);
    int64_t shards = 1;
    int32_t value = whole;
    // A gather of a damaged text may be its own operand.
    for (int step = 0; step < 16 && value >= 0 && shards < devices_; ++step) {
      const int32_t gather = at(value).opcode == "all-gather-done" ? first_input(value) : value;
      if (gather < 0 || collective_kind(at(gather).opcode) != "all_gather") break;
      const int32_t part = first_input(gather);
      shards *= size_ratio(value, part);
      value = part < 0 ? -1 : graph_.origin(part, keeps_elements);
    }
    if (shards != devices_ || value < 0 || !is_computed(value)) return;
    const std::optional<std::vector<int32_t>> users = graph_.final_users(whole, keeps_elements);
    const auto computes = [&](int32_t user) { return is_arithmetic(at(user).opcode); };
    if (!users || users->empty() || !std::all_of(users->begin(), users->end(), computes)) return;
    add("replicated temporary", number, size);
  }

  int32_t first_input(int32_t value) const {
    const std::vector<int32_t> inputs = graph_.inputs(value);
    return inputs.empty() ? -1 : inputs[0];
  }

  /// The result of a gather of one array, which an asynchronous one has where it is done; -1: there is none.
  int32_t gathered_value(int32_t gather) const {
    const auto is_array = [&](int32_t value) { return !at(value).shape.starts_with('('); };
    if (!at(gather).opcode.ends_with("-start")) return is_array(gather) ? gather : -1;
    const std::span<const int32_t> users = graph_.users(gather);
    return users.size() == 1 && is_wait(at(users[0]).opcode) && is_array(users[0]) ? users[0] : -1;
  }

  int64_t size_ratio(int32_t whole, int32_t part) const {
    const int64_t size = part < 0 ? 0 : size_of(part);
    return size > 0 ? std::max<int64_t>(1, size_of(whole) / size) : 1;
  }

  /// Whether a value comes from a product, seen through arithmetic: weights do not.
  bool is_computed(int32_t value) const {
    std::vector<int32_t> stack = {value};
    for (int step = 0; step < 64 && !stack.empty(); ++step) {
      const int32_t one = stack.back();
      stack.pop_back();
      const std::string_view opcode = one < 0 ? "" : at(one).opcode;
      if (opcode == "dot" || opcode == "convolution") return true;
      if (one < 0 || (!keeps_elements(at(one)) && !is_arithmetic(opcode))) continue;
      for (const int32_t input : graph_.inputs(one)) stack.push_back(input);
    }
    return false;
  }

  /// Whether a gathered value is only the unchanged state of a loop that slices it by its counter.
  bool is_stack_of_layers(int32_t gather) const {
    const int64_t size = size_of(gather);
    // Also scaled weights: arithmetic that keeps their size.
    const auto passes = [size](const Instruction& instruction) {
      return keeps_elements(instruction) ||
             (is_arithmetic(instruction.opcode) && bytes_of(arrays_in_shape(instruction.shape)) == size);
    };
    const std::optional<std::vector<int32_t>> users = graph_.final_users(gather, passes);
    if (!users || users->size() != 1 || at(users->front()).opcode != "tuple") return false;
    for (const LoopBody& loop : graph_.loops()) {
      if (graph_.source(module_.begin_operands(at(loop.loop))[0]) != users->front()) continue;
      if (at(loop.loop).operand_count != 1 || at(loop.loop).computation != module_.entry) return false;
      const std::vector<int32_t> state = graph_.inputs(users->front());
      for (size_t k = 0; k < state.size(); ++k) {
        if (graph_.origin(state[k], passes) != gather) continue;
        return is_sliced_in(loop, static_cast<int64_t>(k));
      }
    }
    return false;
  }

  /// Whether the body of a loop uses an element of its state only by slices, and passes it on.
  bool is_sliced_in(const LoopBody& loop, int64_t element) const {
    const Computation& body = module_.computations[static_cast<size_t>(loop.body)];
    int slices = 0;
    for (int32_t i = body.first; i < body.first + body.count; ++i) {
      if (graph_.state_element(loop, i) != element) continue;
      if (graph_.next_value(loop, element) != i) return false;
      const auto users = graph_.final_users(i, keeps_elements);
      if (!users) return false;
      for (const int32_t user : *users) {
        if (user == loop.root) continue;
        if (at(user).opcode != "dynamic-slice" || is_device_slice(user)) return false;
        if (size_of(user) < 1 || size_of(i) / size_of(user) < 2) return false;
        ++slices;
      }
    }
    return slices > 0;
  }

  void remember_gather(size_t number) {
    const Collective& each = collectives_[number];
    const std::vector<int32_t> inputs = graph_.inputs(each.instruction);
    // Gathers that are combined may be of several passes: only the same tensor in one of them is suspicious.
    const int pass = inputs.size() == 1 ? pass_of(each.op_name) : -1 - static_cast<int>(number);
    for (const int32_t input : inputs) {
      if (input < 0 || each.operand_bytes < 1) continue;
      const int32_t origin = graph_.origin(input, keeps_elements);
      const auto key = std::tuple(at(each.instruction).computation, origin, each.groups, pass);
      const auto [first, is_new] = gathers_.try_emplace(key, number);
      if (is_new) continue;
      const int64_t sent = each.bytes.value_or(0) / each.operand_bytes * size_of(input);
      add("gathered twice", number, sent, collectives_[first->second].name);
    }
  }

  /// Messages of float32 whose tensor was, or becomes, a type of two bytes.
  void find_wide_message(size_t number) {
    const Collective& each = collectives_[number];
    const std::vector<int32_t> inputs = graph_.inputs(each.instruction);
    if (inputs.empty() || each.kind == "ragged_all_to_all") return;
    const auto moves = [](const Instruction& instruction) {
      return keeps_elements(instruction) && instruction.opcode != "convert";
    };
    const auto was_narrow = [&](int32_t input) {
      const int32_t origin = graph_.origin(input, moves);
      if (origin < 0 || at(origin).opcode != "convert" || !has_type(at(origin), "f32")) return false;
      const int32_t before = graph_.inputs(origin).empty() ? -1 : graph_.inputs(origin)[0];
      return before >= 0 && is_of_two_bytes(at(before));
    };
    const bool sums = each.kind == "all_reduce" || each.kind == "reduce_scatter";
    const auto passes = [&](const Instruction& instruction) {
      return moves(instruction) || is_wait(instruction.opcode) || instruction.opcode == "get-tuple-element";
    };
    const auto users = graph_.final_users(each.instruction, passes);
    const bool becomes_narrow =
        users && !users->empty() && std::all_of(users->begin(), users->end(), [&](int32_t user) {
          return at(user).opcode == "convert" && is_of_two_bytes(at(user));
        });
    if (std::all_of(inputs.begin(), inputs.end(), was_narrow) && (!sums || becomes_narrow || backend_ == "cpu")) {
      add("float32 message", number, each.bytes.value_or(0), {}, backend_ == "cpu");
    } else if (becomes_narrow && !sums && inputs.size() == 1 && is_wide_parameter(inputs[0])) {
      add("float32 message", number, each.bytes.value_or(0));
    }
  }

  /// Whether a value is a float32 argument of the program, or a slice of one.
  bool is_wide_parameter(int32_t input) const {
    const auto passes = [](const Instruction& instruction) {
      return (keeps_elements(instruction) && instruction.opcode != "convert") ||
             instruction.opcode == "dynamic-slice" || instruction.opcode == "slice";
    };
    int32_t origin = graph_.origin(input, passes);
    for (int depth = 0; depth < 8 && origin >= 0; ++depth) {
      const LoopBody* loop = graph_.loop_of(at(origin).computation);
      const int64_t element = loop ? graph_.state_element(*loop, origin) : -1;
      if (element < 0) break;
      origin = graph_.origin(graph_.initial_value(*loop, element), passes);
    }
    return origin >= 0 && at(origin).opcode == "parameter" && at(origin).computation == module_.entry &&
           has_type(at(origin), "f32");
  }

  const Module& module_;
  const std::vector<Collective>& collectives_;
  const GroupTable& table_;
  int64_t devices_;
  std::string_view backend_;
  ValueGraph graph_;
  std::map<std::tuple<int32_t, int32_t, size_t, int>, size_t> gathers_;
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> find_suspicious(const Module& module, const std::vector<Collective>& collectives,
                                     const GroupTable& table, int64_t devices, std::string_view backend) {
  if (collectives.empty()) return {};
  return Search(module, collectives, table, devices, backend).run();
}

}  // namespace artifex_devices::hlo
