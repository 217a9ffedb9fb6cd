// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace artifex_devices {

/// The texts between `open` and `close`, where `open` is the first one after each `start`.
inline std::vector<std::string> found(const std::string& text, const std::string& start, const std::string& open,
                                      const std::string& close) {
  std::vector<std::string> matches;
  for (size_t at = text.find(start); at != text.npos; at = text.find(start, at)) {
    const size_t begin = text.find(open, at + start.size()) + open.size();
    at = text.find(close, begin);
    matches.push_back(text.substr(begin, at - begin));
  }
  return matches;
}

inline std::vector<std::string> labels(const std::string& svg) { return found(svg, "<text", ">", "</text>"); }
inline std::vector<std::string> fills(const std::string& svg) { return found(svg, "<rect", " fill=\"", "\""); }
inline std::vector<std::string> tooltips(const std::string& svg) { return found(svg, "<g>", "<title>", "</title>"); }

/// Checks that elements are closed in order and attributes contain no markup.
inline bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (const std::string& tag : found(svg, "<", "", ">")) {
    if (tag.find('<') != tag.npos || std::ranges::count(tag, '"') % 2 != 0) return false;
    const std::string name = tag.substr(0, tag.find(' '));
    if (name[0] == '/') {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

}  // namespace artifex_devices
