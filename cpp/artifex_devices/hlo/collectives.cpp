// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/collectives.h"

#include <algorithm>
#include <array>
#include <utility>

#include "artifex_devices/hlo/asynchronous.h"
#include "artifex_devices/hlo/source_place.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

constexpr int64_t kMostDevicesOfTable = int64_t{1} << 24;

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kKinds = {{
    {"all-gather", "all_gather"},
    {"all-reduce", "all_reduce"},
    {"reduce-scatter", "reduce_scatter"},
    {"all-to-all", "all_to_all"},
    {"ragged-all-to-all", "ragged_all_to_all"},
    {"collective-permute", "collective_permute"},
    {"collective-broadcast", "collective_broadcast"},
}};

/// Counts of replicas and partitions, which the ids in groups refer to.
struct DeviceCounts {
  int64_t replicas = 1;
  int64_t partitions = 1;
  int64_t all() const noexcept { return replicas > kMostDevices / partitions ? 0 : replicas * partitions; }
};

int64_t count_in(std::string_view attributes, std::string_view key) noexcept {
  const std::optional<std::string_view> value = attribute(attributes, key);
  const int64_t count = value ? leading_number(*value).value_or(1) : 1;
  return count < 1 || count > kMostDevices ? 1 : count;
}

/// The groups of devices. In groups of replicas each partition, and in groups of partitions each replica, has its own.
std::optional<Groups> device_groups(std::optional<Groups> groups, const DeviceCounts& counts, bool is_of_partitions,
                                    bool is_global, bool spans_partitions) {
  if (!groups) return groups;
  const int64_t all = counts.all();
  const int64_t ids = is_global ? all : is_of_partitions ? counts.partitions : counts.replicas;
  std::erase_if(*groups, [](const Group& group) { return group.empty(); });
  if (groups->empty()) {
    if (ids < 1) return std::nullopt;
    Group every;
    for (int64_t id = 0; id < ids; ++id) every.push_back(id);
    groups->push_back(std::move(every));
  }
  if (is_global || all == ids || all == 0) return groups;
  Groups expanded;
  for (const Group& group : *groups) {
    if (spans_partitions) {
      Group wide;
      for (const int64_t replica : group) {
        for (int64_t part = 0; part < counts.partitions; ++part) wide.push_back(replica * counts.partitions + part);
      }
      expanded.push_back(std::move(wide));
      continue;
    }
    const int64_t copies = is_of_partitions ? counts.replicas : counts.partitions;
    if (static_cast<int64_t>(group.size()) * copies > kMostDevices) return std::nullopt;
    for (int64_t copy = 0; copy < copies; ++copy) {
      Group other;
      for (const int64_t id : group) {
        other.push_back(is_of_partitions ? copy * counts.partitions + id : id * counts.partitions + copy);
      }
      expanded.push_back(std::move(other));
    }
  }
  return expanded;
}

/// The place of a collective: its own, else that of the instruction around it, else of the value that it sends.
SourcePlace nearest_place(const Module& module, const Instruction& instruction, int32_t around) {
  constexpr int kMostValues = 16;
  SourcePlace place = place_of(module, instruction);
  const auto is_empty = [&] { return place.op_name.empty() && place.file.empty(); };
  if (is_empty() && around >= 0) place = place_of(module, module.instructions[static_cast<size_t>(around)]);
  const Instruction* value = &instruction;
  for (int step = 0; step < kMostValues && is_empty() && value->operand_count > 0; ++step) {
    const int32_t operand = module.begin_operands(*value)[0];
    if (operand < 0) break;
    value = &module.instructions[static_cast<size_t>(operand)];
    place = place_of(module, *value);
    const int32_t callee = value->opcode == "fusion" ? called(module, *value, "calls") : -1;
    const int32_t root = callee < 0 ? -1 : module.computations[static_cast<size_t>(callee)].root;
    if (is_empty() && root >= 0) place = place_of(module, module.instructions[static_cast<size_t>(root)]);
  }
  return place;
}

/// Where TPUs convert operands on the way, the result has the type that is sent.
void set_sent_types(const Instruction& instruction, std::vector<ArrayShape>& arrays) {
  if (instruction.opcode.ends_with("-start")) return;
  const std::vector<ArrayShape> results = arrays_in_shape(instruction.shape);
  if (results.size() != arrays.size()) return;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].dtype != results[i].dtype) arrays[i] = array_shape(results[i].dtype, std::move(arrays[i].dims));
  }
}

/// The operands of an instruction as arrays; from the shape of the result where they are not in the text.
std::vector<ArrayShape> operand_arrays(const Module& module, const Instruction& instruction, std::string_view kind) {
  std::vector<ArrayShape> arrays;
  bool is_complete = instruction.operand_count > 0;
  for (int32_t i = 0; i < instruction.operand_count; ++i) {
    const int32_t operand = module.begin_operands(instruction)[i];
    is_complete &= operand >= 0;
    if (operand < 0) continue;
    for (ArrayShape& array : arrays_in_shape(module.instructions[static_cast<size_t>(operand)].shape)) {
      arrays.push_back(std::move(array));
    }
  }
  if (is_complete) {
    set_sent_types(instruction, arrays);
    return arrays;
  }
  arrays = arrays_in_shape(instruction.arguments);  // older texts repeat the shapes of operands
  if (!arrays.empty()) return arrays;
  const bool keeps_shape = kind == "all_reduce" || kind == "collective_permute" || kind == "all_to_all";
  if (keeps_shape && !instruction.opcode.ends_with("-start")) return arrays_in_shape(instruction.shape);
  return {};
}

}  // namespace

GroupTable::GroupTable() : groups_(1), summaries_(1) {}

size_t GroupTable::insert(std::string_view text, std::optional<Groups> groups) {
  size_t number = 0;
  if (!groups) {
    is_incomplete_ = true;
  } else {
    number = number_of(std::move(*groups));
  }
  numbers_.emplace(std::string(text), number);
  return number;
}

size_t GroupTable::number_of(Groups groups) {
  uint64_t digest = 0;
  int64_t count = 0;
  GroupSummary summary;
  for (const Group& group : groups) {
    count += static_cast<int64_t>(group.size()) + 1;
    summary.largest = std::max(summary.largest, static_cast<int64_t>(group.size()));
    summary.moves |= group.size() > 1 && group[0] != group[1];
    for (const int64_t id : group) summary.devices = std::max(summary.devices, id + 1);
    for (const int64_t id : group) digest = (digest ^ static_cast<uint64_t>(id)) * 0x9e3779b97f4a7c15;
    digest = (digest ^ 0x100000000) * 0x9e3779b97f4a7c15;
  }
  const auto [first, last] = by_digest_.equal_range(digest);
  for (auto known = first; known != last; ++known) {
    if (groups_[known->second] == groups) return known->second;
  }
  if (devices_ + count > kMostDevicesOfTable) {
    is_incomplete_ = true;
    return 0;
  }
  devices_ += count;
  by_digest_.emplace(digest, groups_.size());
  groups_.push_back(std::move(groups));
  summaries_.push_back(summary);
  return groups_.size() - 1;
}

std::string_view collective_kind(std::string_view opcode) noexcept {
  if (opcode.ends_with("-start")) opcode.remove_suffix(6);
  for (const auto& [name, kind] : kKinds) {
    if (opcode == name || opcode == kind) return kind;
  }
  return {};
}

std::optional<int64_t> ring_bytes(std::string_view kind, std::optional<int64_t> bytes, int64_t size) {
  if (!bytes || kind == "ragged_all_to_all" || size < 1) return std::nullopt;
  if (size == 1) return 0;
  if (*bytes > kLargestNumber / 2 / size) return std::nullopt;
  if (kind == "all_gather") return (size - 1) * *bytes;
  if (kind == "all_reduce") return (2 * (size - 1) * *bytes + size - 1) / size;
  if (kind == "reduce_scatter" || kind == "all_to_all") return ((size - 1) * *bytes + size - 1) / size;
  return bytes;
}

std::optional<int64_t> bytes_sent(std::string_view kind, std::optional<int64_t> bytes, const GroupSummary& groups,
                                  bool has_pairs) {
  if (has_pairs) return groups.moves ? bytes : std::optional<int64_t>(0);
  return ring_bytes(kind, bytes, groups.largest);
}

std::vector<Collective> find_collectives(const Module& module, const std::vector<Execution>& executions,
                                         GroupTable& table, int64_t& devices) {
  const DeviceCounts counts = {count_in(module.attributes, "replica_count"),
                               count_in(module.attributes, "num_partitions")};
  const bool is_scheduled = attribute(module.attributes, "is_scheduled") == "true";
  devices = counts.all();
  const Asynchronous asynchronous(module, executions);
  std::vector<Collective> found;
  for (size_t i = 0; i < module.instructions.size(); ++i) {
    const Instruction& instruction = module.instructions[i];
    std::string_view kind = collective_kind(instruction.opcode);
    if (kind.empty()) continue;
    const auto number = static_cast<int32_t>(i);
    if (asynchronous.is_copy(number)) continue;
    if (kind == "all_reduce" && asynchronous.is_scatter(number)) kind = "reduce_scatter";
    const Execution& execution = executions[static_cast<size_t>(instruction.computation)];
    Collective each;
    each.kind = kind;
    each.instruction = number;
    const int32_t start = asynchronous.start(number);
    const Instruction& named = start < 0 ? instruction : module.instructions[static_cast<size_t>(start)];
    each.name = std::string(named.name);
    each.is_async = start >= 0;
    each.overlaps = is_scheduled && asynchronous.overlaps(number);
    const std::vector<ArrayShape> arrays = operand_arrays(module, instruction, kind);
    for (const ArrayShape& array : arrays) {
      each.dtypes.push_back(array.dtype);
      each.shapes.push_back(array.dims);
    }
    const std::optional<int64_t> bytes = arrays.empty() ? std::nullopt : bytes_of(arrays);
    each.operand_bytes = bytes.value_or(0);
    each.has_pairs = kind == "collective_permute";
    const bool has_channel = attribute(instruction.attributes, "channel_id").has_value();
    const bool is_global = attribute(instruction.attributes, "use_global_device_ids") == "true";
    const bool sums = kind == "all_gather" || kind == "all_reduce" || kind == "reduce_scatter";
    const std::string_view key = each.has_pairs ? "source_target_pairs" : "replica_groups";
    std::string_view text = rest_of_attribute(instruction.attributes, key).value_or("");
    // The axes of a mesh may follow a comma.
    const size_t end = text.starts_with("mesh[") ? text.find('}') : kNone;
    text = end == kNone ? attribute(instruction.attributes, key).value_or("{}") : text.substr(0, end + 1);
    const char mode = static_cast<char>('0' + (has_channel ? 1 : 0) + (is_global ? 2 : 0) + (sums ? 4 : 0));
    each.groups = table.add(mode + std::string(text), [&] {
      const bool is_of_partitions = has_channel && !sums;
      std::optional<Groups> groups = each.has_pairs ? parse_pairs(text) : parse_groups(text);
      if (each.has_pairs && groups && groups->empty()) return groups;
      return device_groups(std::move(groups), counts, is_of_partitions, is_global, has_channel && sums && !is_global);
    });
    const GroupSummary& groups = table.summary(each.groups);
    if (each.groups > 0) each.bytes = bytes_sent(kind, bytes, groups, each.has_pairs);
    devices = std::max(devices, groups.devices);
    const Execution& caller = start < 0 ? execution : executions[static_cast<size_t>(named.computation)];
    each.runs = caller.is_reached ? caller.runs : std::nullopt;
    const SourcePlace place = nearest_place(module, instruction, start >= 0 ? start : asynchronous.fusion_of(number));
    each.op_name = place.op_name;
    each.file = place.file;
    each.line = place.line;
    // Where the text ends before the loop, only the name of the operation tells.
    each.in_loop = caller.in_loop || (!caller.is_reached && each.op_name.find("/while/body/") != kNone);
    found.push_back(std::move(each));
  }
  return found;
}

}  // namespace artifex_devices::hlo
