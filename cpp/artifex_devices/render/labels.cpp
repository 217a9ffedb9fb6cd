// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace artifex_devices {

int64_t text_width(std::string_view text) noexcept {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::vector<std::string> wrapped(std::string_view text, int64_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (lines.empty() || text_width(lines.back()) + 1 + text_width(word) > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

std::string axis_label(AxisName name) {
  if (!name.is_foreign()) {
    const std::string quoted = name.repr();
    return quoted.substr(1, quoted.size() - 2);
  }
  std::string label = name.text();
  std::ranges::replace_if(label, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return label;
}

std::string platform_label(const DeviceList& devices) {
  std::string label = devices.front()->platform();
  std::ranges::transform(label, label.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return label;
}

std::string devices_label(std::string_view platform, const std::vector<int64_t>& ids, int64_t max_width) {
  if (ids.empty()) return "";
  const auto fits = [&](std::string_view label) { return text_width(label) <= max_width; };
  const auto count = static_cast<int64_t>(ids.size());
  if (2 * count - 1 <= max_width) {  // does not format thousands of ids
    std::string all = fmt::format("{} {}", platform, fmt::join(ids, ","));
    if (fits(all)) return all;
  }
  std::string runs = fmt::format("{} ", platform);
  for (size_t i = 0; i < ids.size();) {
    size_t end = i + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    if (end - i == 2) end = i + 1;  // "0,1" is as short as "0-1"
    runs += fmt::format("{}{}", i == 0 ? "" : ",", ids[i]);
    if (end - i > 1) runs += fmt::format("-{}", ids[end - 1]);
    i = end;
    if (!fits(runs)) break;
  }
  return fits(runs) || count < 2 ? runs : fmt::format("{} {}..{}", platform, ids.front(), ids.back());
}

}  // namespace artifex_devices
