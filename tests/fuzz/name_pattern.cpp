// SPDX-License-Identifier: Apache-2.0
// Patterns of rules. The first line of the input is a pattern, the others are names.
#include "artifex_devices/conversion/name_pattern.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "artifex_devices/base/error.h"
#include "fuzz.h"

using namespace artifex_devices;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  const auto line = [&] {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return found;
  };
  try {
    const NamePattern pattern(std::string(line()), "fuzz");
    while (!text.empty()) {
      const std::string_view name = line();
      if (const std::optional<NameMatch> match = pattern.match(name)) fuzz::require(pattern.fill(*match) == name);
    }
  } catch (const InvalidArgument&) {
  }
  return 0;
}
