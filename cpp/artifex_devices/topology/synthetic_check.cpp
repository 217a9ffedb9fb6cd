// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/topology/loaded_machine.h"

// Checks the sizes of a synthetic machine before hwloc builds it in more than quadratic time.
namespace artifex_devices {
namespace {

constexpr int64_t kMostSyntheticPus = 4096;
constexpr int64_t kMostSyntheticIndex = 65'535;
constexpr int64_t kMostLevels = 100;
constexpr size_t kMostCharacters = size_t{64} << 10;

[[noreturn]] void refuse(const std::string& description, const std::string& why) {
  const bool is_long = description.size() > 200;
  throw_error(
      "from_synthetic: {:?}{} is not a synthetic machine: {}; expected levels from the outside in, each type:count, "
      "that end in pu, such as \"pack:2 numa:2 core:4 pu:2\"",
      is_long ? description.substr(0, 200) : description, is_long ? "..." : "", why);
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) {
    return std::ranges::equal(text.substr(0, beginning.size()), beginning,
                              [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
  });
}

// hwloc aborts for types that are not a level, such as memcache.
bool is_level(std::string_view type) {
  return begins_with_any(type, {"pack", "sock", "die", "numa", "node", "core", "pu", "group", "tile", "module",
                                "cluster", "l1", "l2", "l3", "l4", "l5"});
}

// "(memory=1GB indexes=0,2,1,3)": an index is a bit of a set, so a large one takes memory for all below.
void check_attributes(const std::string& description, std::string_view attributes) {
  for (size_t at = attributes.find("indexes="); at != std::string_view::npos; at = attributes.find("indexes=", at)) {
    for (at += 8; at < attributes.size() && attributes[at] != ' ' && attributes[at] != ')'; ++at) {
      int64_t index = 0;
      const char* const end = attributes.data() + attributes.size();
      const auto [stop, error] = std::from_chars(attributes.data() + at, end, index);
      if (error == std::errc::result_out_of_range || index > kMostSyntheticIndex) {
        refuse(description, fmt::format("it has an index of more than {}", kMostSyntheticIndex));
      }
      if (error == std::errc{}) at = static_cast<size_t>(stop - attributes.data()) - 1;
    }
  }
}

}  // namespace

void check_synthetic(const std::string& description) {
  if (description.size() > kMostCharacters) {
    refuse(description, fmt::format("it has more than {} characters", kMostCharacters));
  }
  for (const char c : description) {
    if ((c < ' ' || c > '~') && c != '\t' && c != '\n')
      refuse(description, "it has a character that is not plain text");
  }
  int64_t width = 1;
  int64_t levels = 0;
  int64_t attached = 0;
  size_t i = 0;
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  const auto skip_to = [&](char end, const char* what) {
    const size_t begin = i;
    i = description.find(end, i);
    if (i == std::string::npos) refuse(description, fmt::format("{} is not closed", what));
    ++i;
    const std::string_view skipped = std::string_view(description).substr(begin, i - begin);
    check_attributes(description, skipped);
    return skipped;
  };
  while (i < description.size()) {
    const char c = description[i];
    if (is_blank(c)) {
      ++i;
    } else if (c == '(') {
      skip_to(')', "a parenthesis");
    } else if (c == '[') {
      if (!begins_with_any(skip_to(']', "a bracket").substr(1), {"numa", "node"})) {
        refuse(description, "only numa may be in brackets");
      }
      attached += width;
      if (attached > kMostSyntheticPus)
        refuse(description, fmt::format("it has more than {} memories", kMostSyntheticPus));
    } else {
      const size_t begin = i;
      while (i < description.size() && !is_blank(description[i]) && description[i] != '(' && description[i] != '[') ++i;
      const std::string_view level = std::string_view(description).substr(begin, i - begin);
      const size_t colon = level.find(':');
      const std::string_view digits = colon == std::string_view::npos ? level : level.substr(colon + 1);
      if (colon != std::string_view::npos && !is_level(level)) {
        refuse(description, fmt::format("level {:?} has a type that cannot be a level", level));
      }
      int64_t count = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
      if (error == std::errc::result_out_of_range) count = INT64_MAX;
      if (error == std::errc::invalid_argument || end != digits.data() + digits.size() || count < 1) {
        refuse(description, fmt::format("level {:?} has no count of 1 or more", level));
      }
      width = checked_mul(width, count).value_or(INT64_MAX);
      if (width > kMostSyntheticPus) {
        refuse(description, fmt::format("level {:?} makes more than {} PUs", level, kMostSyntheticPus));
      }
      if (++levels > kMostLevels) refuse(description, fmt::format("it has more than {} levels", kMostLevels));
    }
  }
  if (levels == 0) refuse(description, "it has no level");
}

}  // namespace artifex_devices
