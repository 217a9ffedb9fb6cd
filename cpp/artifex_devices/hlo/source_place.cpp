// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/source_place.h"

#include <array>

#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

constexpr int kMostFrames = 256;

/// The value behind `key=` in metadata, whose entries are separated by blanks.
std::string_view metadata_value(std::string_view metadata, std::string_view key) noexcept {
  for (size_t at = 0; at < metadata.size();) {
    while (at < metadata.size() && is_space(metadata[at])) ++at;
    const size_t start = at;
    while (at < metadata.size() && metadata[at] != '=') ++at;
    const std::string_view name = metadata.substr(start, at - start);
    const size_t value = ++at;
    if (value >= metadata.size()) return {};
    if (metadata[value] == '"') {
      at = end_of_quotes(metadata, value);
    } else if (metadata[value] == '{') {
      at = end_of_brackets(metadata, value);
    } else {
      at = metadata.find(' ', value);
    }
    if (at == kNone) at = metadata.size();
    if (name == key) return metadata.substr(value, at - value);
  }
  return {};
}

}  // namespace

bool is_installed_file(std::string_view file) noexcept {
  static constexpr std::array<std::string_view, 4> kFolders = {"/site-packages/", "/dist-packages/", "/jax/_src/",
                                                               "/jax/experimental/"};
  if (file.starts_with('<')) return true;
  for (const std::string_view folder : kFolders) {
    if (file.find(folder) != kNone) return true;
  }
  return false;
}

SourcePlace place_of(const Module& module, const Instruction& instruction) {
  SourcePlace place;
  const std::optional<std::string_view> found = attribute(instruction.attributes, "metadata");
  if (!found) return place;
  const std::string_view metadata = inside_brackets(*found);
  place.op_name = unquoted(metadata_value(metadata, "op_name"));
  place.file = unquoted(metadata_value(metadata, "source_file"));
  place.line = leading_number(metadata_value(metadata, "source_line")).value_or(0);
  int64_t id = leading_number(metadata_value(metadata, "stack_frame_id")).value_or(0);
  bool is_users = false;
  for (int i = 0; i < kMostFrames && id > 0 && !is_users; ++i) {
    const auto frame = module.frames.find(id);
    if (frame == module.frames.end()) break;
    const auto location = module.locations.find(frame->second.location);
    if (location != module.locations.end()) {
      const auto file = module.files.find(location->second.file);
      const std::string name = file == module.files.end() ? std::string() : unquoted(file->second);
      is_users = !name.empty() && !is_installed_file(name);
      if (is_users || (i == 0 && place.file.empty())) {
        place.file = name;
        place.line = location->second.line;
      }
    }
    id = frame->second.parent;
  }
  return place;
}

}  // namespace artifex_devices::hlo
