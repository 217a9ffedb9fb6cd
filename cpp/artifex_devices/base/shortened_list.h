// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

namespace artifex_devices {

/// "cpu:0, cpu:1, and 6 more": the texts of at most `most` items, which keeps messages about thousands of items
/// readable.
template <typename Items, typename ToText>
std::string shortened_list(const Items& items, ToText to_text, size_t most = 8) {
  std::string text;
  for (size_t i = 0; i < items.size() && i < most; ++i) text += fmt::format("{}{}", i ? ", " : "", to_text(items[i]));
  if (items.size() > most) text += fmt::format(", and {} more", items.size() - most);
  return text;
}

}  // namespace artifex_devices
