// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/stablehlo_text.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "artifex_devices/hlo/mlir_locations.h"
#include "artifex_devices/hlo/mlir_loop.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

/// The name at a position, such as "%iterArg_14" or "@main".
std::string_view name_at(std::string_view text, size_t at) noexcept {
  size_t end = at;
  while (end < text.size() && (is_name_sign(text[end]) || text[end] == '%' || text[end] == '#')) ++end;
  return text.substr(at, end - at);
}

std::string_view text_behind(std::string_view text, std::string_view mark) noexcept {
  const size_t at = text.find(mark);
  return at == kNone ? std::string_view() : text.substr(at + mark.size());
}

enum class Region : uint8_t { kOther, kFunction, kCondition, kBody, kBranch };

struct Scope {
  Region region = Region::kOther;
  int32_t node = 0;         // in the graph of calls
  int32_t collective = -1;  // whose region this is
  size_t loop = 0;          // number of the loop, for kCondition and kBody
};

class StablehloReader {
 public:
  StablehloReader(std::string_view text, const MeshAxes& mesh, GroupTable& table)
      : text_(text), mesh_(mesh), table_(table), locations_(text) {}

  StablehloModule read() {
    const std::string_view start = behind_comments(text_);
    size_t at = static_cast<size_t>(start.data() - text_.data());
    const std::string_view head = text_.substr(at, text_.find('\n', at) - at);
    module_.name = name_at(head, std::min(head.find('@'), head.size()));
    if (module_.name.starts_with('@')) module_.name.remove_prefix(1);
    module_.devices = count_of(head, "mhlo.num_partitions") * count_of(head, "mhlo.num_replicas");
    while (at < text_.size()) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      read_line(trimmed(text_.substr(at, end - at)));
      at = end + 1;
    }
    module_.is_cut = !scopes_.empty();
    finish();
    return std::move(module_);
  }

 private:
  static int64_t count_of(std::string_view head, std::string_view key) noexcept {
    std::string_view rest = text_behind(head, key);
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '=')) rest.remove_prefix(1);
    const int64_t count = leading_number(rest).value_or(1);
    return count < 1 || count > 1024 * 1024 ? 1 : count;
  }

  int32_t add_node() {
    calls_.emplace_back();
    return static_cast<int32_t>(calls_.size()) - 1;
  }

  int32_t function_node(std::string_view name) {
    const auto [known, is_new] = functions_.try_emplace(name, 0);
    if (is_new) known->second = add_node();
    return known->second;
  }

  int32_t node() const { return scopes_.empty() ? -1 : scopes_.back().node; }

  void call(int32_t callee, std::optional<int64_t> times, bool is_loop) {
    if (node() >= 0) calls_[static_cast<size_t>(node())].push_back({callee, times, is_loop});
  }

  void read_line(std::string_view line) {
    if (line.empty() || line.starts_with('#') || line.starts_with("//")) return;
    Scope next = {.node = node()};
    if (line.starts_with('}')) next = close(line);
    if (!line.starts_with('}')) read_operation(line, next);
    if (line.ends_with('{')) scopes_.push_back(next);
  }

  /// Ends a scope; the scope that the same line may begin.
  Scope close(std::string_view line) {
    if (scopes_.empty()) return {};
    const Scope ended = scopes_.back();
    scopes_.pop_back();
    Scope next = {.node = node()};
    if (ended.region == Region::kCondition && line.starts_with("} do")) {
      next = {Region::kBody, add_node(), -1, ended.loop};
      call(next.node, std::nullopt, true);
      body_calls_[ended.loop] = {node(),
                                 calls_.empty() || node() < 0 ? 0 : calls_[static_cast<size_t>(node())].size() - 1};
    } else if (ended.region == Region::kBody) {
      end_loop(ended.loop);
    } else if (ended.region == Region::kBranch && line.ends_with('{')) {
      next = {Region::kBranch, add_node(), -1, 0};
      call(next.node, std::nullopt, false);
    } else if (ended.collective >= 0) {
      if (line.ends_with('{')) {
        next = ended;
      } else {
        set_types(ended.collective, line);
      }
    }
    return next;
  }

  void end_loop(size_t number) {
    const auto [caller, index] = body_calls_[number];
    if (caller < 0) return;
    calls_[static_cast<size_t>(caller)][index].times = loops_[number].trips();
  }

  void read_operation(std::string_view line, Scope& next) {
    if (line.starts_with("func.func ")) {
      const std::string_view name = name_at(line, std::min(line.find('@'), line.size()));
      next = {Region::kFunction, function_node(name), -1, 0};
      constants_.clear();
      if (name == "@main" || entry_ < 0) entry_ = next.node;
      return;
    }
    if (line.starts_with("cond {") && !loops_.empty()) {
      next.region = Region::kCondition;
      next.loop = open_loop_;
      return;
    }
    if (line.starts_with("stablehlo.return ") && !scopes_.empty() && scopes_.back().region == Region::kBody) {
      loops_[scopes_.back().loop].set_returned(line.substr(17, line.find(" : ") - 17));
      return;
    }
    const size_t equals = line.find(" = ");
    const std::string_view result =
        line.starts_with('%') && equals != kNone ? line.substr(0, equals) : std::string_view();
    std::string_view operation = result.empty() ? line : line.substr(equals + 3);
    if (operation.starts_with("call @") || operation.starts_with("func.call @")) {
      call(function_node(name_at(operation, operation.find('@'))), 1, false);
    } else if (operation.starts_with("stablehlo.constant dense<")) {
      std::string_view value = operation.substr(25);
      const bool is_negative = value.starts_with('-');
      if (is_negative) value.remove_prefix(1);
      const std::optional<int64_t> number = leading_number(value);
      const size_t end = value.find('>');
      if (number && end != kNone && value.substr(0, end).find_first_not_of("0123456789") == kNone) {
        constants_[result] = is_negative ? -*number : *number;
      }
    } else if (operation.starts_with("stablehlo.while(")) {
      open_loop_ = loops_.size();
      loops_.emplace_back(operation, constants_);
      body_calls_.emplace_back(-1, size_t{0});
    } else if (operation.starts_with("\"stablehlo.while\"") || operation.starts_with("\"stablehlo.if\"") ||
               operation.starts_with("\"stablehlo.case\"") || operation.starts_with("stablehlo.if")) {
      next = {Region::kBranch, add_node(), -1, 0};
      call(next.node, std::nullopt, operation.starts_with("\"stablehlo.while"));
    } else if (operation.starts_with("stablehlo.compare ") && !scopes_.empty() &&
               scopes_.back().region == Region::kCondition) {
      loops_[scopes_.back().loop].read_comparison(operation, constants_);
    } else if (operation.starts_with("stablehlo.add ") && !scopes_.empty() && scopes_.back().region == Region::kBody) {
      loops_[scopes_.back().loop].read_sum(result, operation, constants_);
    } else {
      read_collective(line, result, operation, next);
    }
  }

  void read_collective(std::string_view line, std::string_view result, std::string_view operation, Scope& next) {
    if (operation.starts_with('"')) operation.remove_prefix(1);
    if (!operation.starts_with("stablehlo.") && !operation.starts_with("mhlo.")) return;
    operation.remove_prefix(operation.find('.') + 1);
    const std::string_view kind = collective_kind(name_at(operation, 0));
    if (kind.empty()) return;
    Collective each;
    each.name = std::string(result.substr(0, result.find(':')));
    each.kind = kind;
    each.has_pairs = kind == "collective_permute";
    each.instruction = node();
    std::string_view groups = text_behind(line, each.has_pairs ? "source_target_pairs = " : "replica_groups = ");
    const size_t end = groups.find(groups.starts_with('#') ? "]>" : "> : tensor<");
    const size_t type_end = end == kNone ? kNone : groups.find('>', end + 11);
    groups = groups.substr(0, groups.starts_with('#') || type_end == kNone ? end : type_end);
    each.groups = table_.add(groups, [&] { return each.has_pairs ? parse_pairs(groups) : groups_of(groups); });
    const SourcePlace place = locations_.place_of_line(line);
    each.op_name = place.op_name;
    each.file = place.file;
    each.line = place.line;
    module_.collectives.push_back(std::move(each));
    const auto number = static_cast<int32_t>(module_.collectives.size()) - 1;
    if (line.ends_with('{')) {
      next.collective = number;
    } else {
      set_types(number, line);
    }
  }

  std::optional<Groups> groups_of(std::string_view text) const {
    if (!text.starts_with('#')) return parse_groups(text);
    std::string axes = "mesh[", names;
    for (const auto& [name, size] : mesh_) axes += "'" + name + "'=" + std::to_string(size) + ",";
    for (std::string_view rest = text_behind(text, "name = \""); !rest.empty(); rest = text_behind(rest, "name = \"")) {
      names += (names.empty() ? "'" : ",'") + std::string(rest.substr(0, rest.find('"'))) + "'";
    }
    return parse_groups(axes + "] {" + names + "}");
  }

  /// Sets shapes and bytes from the types at the end of a line: ": (tensor<16x64xf32>) -> tensor<32x64xf32>".
  void set_types(int32_t number, std::string_view line) {
    Collective& each = module_.collectives[static_cast<size_t>(number)];
    const size_t arrow = line.rfind(" -> ");
    const size_t open = arrow == kNone ? kNone : line.rfind(" : (", arrow);
    if (open == kNone) return;
    const std::vector<ArrayShape> arrays = arrays_in_types(line.substr(open, arrow - open));
    for (const ArrayShape& array : arrays) {
      each.dtypes.push_back(array.dtype);
      each.shapes.push_back(array.dims);
    }
    const std::optional<int64_t> bytes = arrays.empty() ? std::nullopt : bytes_of(arrays);
    each.operand_bytes = bytes.value_or(0);
    if (each.groups > 0) each.bytes = bytes_sent(each.kind, bytes, table_.summary(each.groups), each.has_pairs);
    if (each.file.empty()) {
      const SourcePlace place = locations_.place_of_line(line);
      if (each.op_name.empty()) each.op_name = place.op_name;
      each.file = place.file;
      each.line = place.line;
    }
  }

  void finish() {
    const std::vector<Execution> executions = count_runs(calls_, entry_);
    for (Collective& each : module_.collectives) {
      if (each.instruction >= 0) {
        const Execution& execution = executions[static_cast<size_t>(each.instruction)];
        each.runs = execution.is_reached ? execution.runs : std::nullopt;
        each.in_loop = execution.in_loop;
      }
      each.instruction = -1;
      module_.devices = std::max(module_.devices, table_.summary(each.groups).devices);
    }
  }

  std::string_view text_;
  const MeshAxes& mesh_;
  GroupTable& table_;
  MlirLocations locations_;
  StablehloModule module_;
  std::vector<Scope> scopes_;
  std::vector<std::vector<Call>> calls_;
  std::unordered_map<std::string_view, int32_t> functions_;
  MlirConstants constants_;
  std::vector<MlirLoop> loops_;
  std::vector<std::pair<int32_t, size_t>> body_calls_;
  size_t open_loop_ = 0;
  int32_t entry_ = -1;
};

}  // namespace

bool is_stablehlo_text(std::string_view text) noexcept {
  const std::string_view rest = behind_comments(text);
  return rest.starts_with("module ") && rest.substr(0, rest.find('\n')).find('{') != kNone;
}

StablehloModule read_stablehlo(std::string_view text, const MeshAxes& mesh, GroupTable& table) {
  return StablehloReader(text, mesh, table).read();
}

}  // namespace artifex_devices::hlo
