// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/module_text.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

constexpr size_t kMostInstructions = size_t{1} << 27;
constexpr std::string_view kModule = "HloModule";

/// Whether a line begins an instruction: "  ROOT %name = ".
bool begins_instruction(std::string_view line) noexcept {
  size_t at = 0;
  while (at < line.size() && is_space(line[at]) && line[at] != '\n') ++at;
  if (line.substr(at, 5) == "ROOT ") at += 5;
  if (at < line.size() && line[at] == '%') ++at;
  const size_t start = at;
  while (at < line.size() && is_name_sign(line[at])) ++at;
  return at > start && line.substr(at, 3) == " = ";
}

/// Whether a text begins with the line that ends a computation: "}" or "}, execution_thread=...".
bool ends_computation(std::string_view text) noexcept {
  if (!text.starts_with('}')) return false;
  return text.size() == 1 || text[1] == '\n' || text[1] == '\r' || text[1] == ',';
}

/// Whether a text begins with the first line of a computation: "%name (", "name {", "ENTRY ".
bool begins_computation(std::string_view text) noexcept {
  if (text.empty() || is_space(text[0])) return false;
  const std::string_view line = trimmed(text.substr(0, text.find('\n')));
  return line.ends_with('{') && (line[0] == '%' || is_name_sign(line[0]));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Module read() {
    read_head();
    while (at_ < text_.size()) {
      const std::string_view line = trimmed(next_line());
      if (line.empty()) continue;
      if (line.ends_with('{') && !line.starts_with('}')) {
        read_computation(line);
      } else if (line == "FileNames" || line == "FunctionNames" || line == "FileLocations" || line == "StackFrames") {
        read_table(line);
      } else {
        ++module_.unread_lines;
      }
    }
    finish();
    return std::move(module_);
  }

 private:
  std::string_view next_line() noexcept {
    const size_t end = text_.find('\n', at_);
    const std::string_view line = text_.substr(at_, end == kNone ? kNone : end - at_);
    at_ = end == kNone ? text_.size() : end + 1;
    return line;
  }

  void read_head() {
    std::string_view line = next_line();
    line.remove_prefix(kModule.size());
    line = trimmed(line);
    size_t end = 0;
    while (end < line.size() && line[end] != ',' && !is_space(line[end])) ++end;
    module_.name = line.substr(0, end);
    module_.attributes = line.substr(end < line.size() ? end + 1 : end);
  }

  /// Lines `1 "text"` and `1 {name=number ...}` up to an empty line.
  void read_table(std::string_view title) {
    while (at_ < text_.size()) {
      const std::string_view line = trimmed(next_line());
      const std::optional<int64_t> id = leading_number(line);
      if (!id) return;
      const std::string_view value = trimmed(line.substr(std::min(line.find_first_not_of("0123456789"), line.size())));
      if (title == "FileNames") {
        module_.files.emplace(*id, value);
      } else if (title == "FileLocations") {
        module_.locations.emplace(*id, FileLocation{number_of(value, "file_name_id"), number_of(value, "line")});
      } else if (title == "StackFrames") {
        module_.frames.emplace(*id, Frame{number_of(value, "file_location_id"), number_of(value, "parent_frame_id")});
      }
    }
  }

  static int64_t number_of(std::string_view value, std::string_view key) noexcept {
    for (size_t at = value.find(key); at != kNone; at = value.find(key, at + 1)) {
      const bool is_whole = at == 0 || !is_name_sign(value[at - 1]);
      if (is_whole && value.substr(at + key.size()).starts_with('=')) {
        return leading_number(value.substr(at + key.size() + 1)).value_or(0);
      }
    }
    return 0;
  }

  /// "%name (parameters) -> shape {", "ENTRY name {".
  void read_computation(std::string_view line) {
    const bool is_entry = line.starts_with("ENTRY ");
    if (is_entry) line = trimmed(line.substr(6));
    if (line.starts_with('%')) line.remove_prefix(1);
    size_t end = 0;
    while (end < line.size() && !is_space(line[end]) && line[end] != '(') ++end;
    if (end == 0) {
      ++module_.unread_lines;
      return;
    }
    const auto number = static_cast<int32_t>(module_.computations.size());
    if (is_entry) module_.entry = number;
    module_.computation_of.emplace(line.substr(0, end), number);
    module_.computations.push_back({.name = line.substr(0, end), .first = count()});
    instruction_of_.clear();
    bool is_closed = false;
    while (at_ < text_.size() && !is_closed) is_closed = read_statement();
    module_.computations.back().count = count() - module_.computations.back().first;
    if (!is_closed) module_.is_cut = true;
    resolve_operands(module_.computations.back());
  }

  int32_t count() const noexcept { return static_cast<int32_t>(module_.instructions.size()); }

  /// One instruction; whether it was the end of the computation.
  bool read_statement() {
    const size_t start = at_;
    const std::string_view line = trimmed(next_line());
    if (line.empty() || line.starts_with("//")) return false;
    if (ends_computation(text_.substr(start))) return true;
    if (!begins_instruction(line)) {
      if (begins_computation(text_.substr(start))) {  // the closing bracket is missing
        at_ = start;
        module_.is_cut = true;
        return true;
      }
      ++module_.unread_lines;
      return false;
    }
    at_ = end_of_statement(start);
    const bool is_cut = at_ == text_.size() && !text_.ends_with('\n');
    if (!is_cut && !read_instruction(trimmed(text_.substr(start, at_ - start)))) ++module_.unread_lines;
    return false;
  }

  /// Position behind the line in which the brackets of an instruction are closed and no comma is last: constants and
  /// attributes may span lines. A line that begins something else ends it too.
  size_t end_of_statement(size_t start) const noexcept {
    int64_t depth = 0;
    bool is_quoted = false;
    char last = ' ';  // that is not blank
    for (size_t at = start; at < text_.size(); ++at) {
      const char sign = text_[at];
      if (sign == '\n') {
        const std::string_view next = text_.substr(at + 1);
        const bool is_open = depth > 0 || is_quoted || last == ',';
        if (!is_open || begins_instruction(next) || ends_computation(next) || begins_computation(next)) return at + 1;
      } else if (is_quoted) {
        if (sign == '\\') ++at;
        if (sign == '"') is_quoted = false;
      } else if (sign == '"') {
        is_quoted = true;
      } else if (sign == '(' || sign == '[' || sign == '{') {
        ++depth;
      } else if (sign == ')' || sign == ']' || sign == '}') {
        --depth;
      }
      if (!is_space(sign)) last = sign;
    }
    return text_.size();
  }

  bool read_instruction(std::string_view line) {
    const bool is_root = line.starts_with("ROOT ");
    if (is_root) line = trimmed(line.substr(5));
    const size_t equals = line.find(" = ");
    Instruction found;
    found.name = line.substr(0, equals);
    if (found.name.starts_with('%')) found.name.remove_prefix(1);
    line = trimmed(line.substr(equals + 3));
    size_t end = line.starts_with('(') ? end_of_brackets(line, 0) : line.find(' ');
    if (end == kNone) return false;
    found.shape = line.substr(0, end);
    line = trimmed(line.substr(end));
    size_t open = 0;
    while (open < line.size() && is_name_sign(line[open])) ++open;
    if (open == 0 || open == line.size() || line[open] != '(') return false;
    found.opcode = line.substr(0, open);
    const size_t close = end_of_brackets(line, open);
    if (close == kNone) return false;
    found.arguments = line.substr(open + 1, close - open - 2);
    found.attributes = trimmed(line.substr(close));
    if (found.attributes.starts_with(',')) found.attributes.remove_prefix(1);
    found.computation = static_cast<int32_t>(module_.computations.size()) - 1;
    if (module_.instructions.size() == kMostInstructions) {
      throw_error("audit.program: the HLO text has more than {} instructions; expected fewer; give a part of it",
                  kMostInstructions);
    }
    if (is_root) module_.computations.back().root = count();
    instruction_of_.emplace(found.name, count());
    module_.instructions.push_back(found);
    return true;
  }

  void resolve_operands(const Computation& computation) {
    for (int32_t i = computation.first; i < computation.first + computation.count; ++i) {
      Instruction& instruction = module_.instructions[static_cast<size_t>(i)];
      instruction.first_operand = static_cast<int32_t>(module_.operands.size());
      if (instruction.opcode == "constant" || instruction.opcode == "parameter") continue;
      for (std::string_view operand : split_list(instruction.arguments)) {
        const size_t blank = operand.find_last_of(" \t");
        if (blank != kNone) operand.remove_prefix(blank + 1);
        if (operand.starts_with('%')) operand.remove_prefix(1);
        const auto known = instruction_of_.find(operand);
        module_.operands.push_back(known == instruction_of_.end() ? -1 : known->second);
      }
      instruction.operand_count = static_cast<int32_t>(module_.operands.size()) - instruction.first_operand;
    }
  }

  void finish() {
    if (module_.entry < 0) module_.is_cut = true;
    // Newer texts count the callers from 1, with the frame's own number where there is none; older ones from 0.
    bool has_zero = false;
    for (const auto& [id, frame] : module_.frames) has_zero |= frame.parent == 0;
    if (has_zero) return;
    for (auto& [id, frame] : module_.frames) --frame.parent;
  }

  std::string_view text_;
  size_t at_ = 0;
  Module module_;
  std::unordered_map<std::string_view, int32_t> instruction_of_;
};

}  // namespace

bool is_hlo_text(std::string_view text) noexcept {
  const std::string_view rest = behind_comments(text);
  return rest.starts_with(kModule) && rest.size() > kModule.size() && is_space(rest[kModule.size()]);
}

Module read_module(std::string_view text) {
  if (!is_hlo_text(text)) {
    throw_error(
        "audit.program: the text is not HLO text; expected a first line \"HloModule name\"; give compiled.as_text()");
  }
  return Reader(behind_comments(text)).read();
}

}  // namespace artifex_devices::hlo
