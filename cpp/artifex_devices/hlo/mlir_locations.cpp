// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/mlir_locations.h"

#include <vector>

#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

constexpr int kMostLocations = 256;  // that a place may refer to

}  // namespace

MlirLocations::MlirLocations(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("#loc")) continue;
    const size_t open = line.find(" = loc(");
    if (open != kNone) locations_.emplace(line.substr(0, open), line.substr(open + 7));
  }
}

SourcePlace MlirLocations::place_of_line(std::string_view line) const {
  SourcePlace place;
  const size_t last = line.rfind(" loc(");
  if (last == kNone) return place;
  std::vector<std::string_view> stack = {line.substr(last + 5)};
  bool is_users = false;
  for (int i = 0; i < kMostLocations && !stack.empty() && !is_users; ++i) {
    const std::string_view location = stack.back();
    stack.pop_back();
    std::vector<std::string_view> references;
    for (size_t at = 0; at < location.size() && !is_users;) {
      if (location[at] == '#') {
        size_t end = at + 1;
        while (end < location.size() && is_name_sign(location[end])) ++end;
        const auto known = locations_.find(location.substr(at, end - at));
        if (known != locations_.end()) references.push_back(known->second);
        at = end;
      } else if (location[at] == '"') {
        const size_t end = std::min(end_of_quotes(location, at), location.size());
        const std::string name = unquoted(location.substr(at, end - at));
        const bool is_file =
            end < location.size() && location[end] == ':' && end + 1 < location.size() && is_digit(location[end + 1]);
        if (is_file) {
          is_users = !is_installed_file(name);
          if (is_users || place.file.empty()) {
            place.file = name;
            place.line = leading_number(location.substr(end + 1)).value_or(0);
          }
        } else if (place.op_name.empty()) {
          place.op_name = name;
        }
        at = end;
      } else {
        ++at;
      }
    }
    stack.insert(stack.end(), references.rbegin(), references.rend());
  }
  return place;
}

}  // namespace artifex_devices::hlo
