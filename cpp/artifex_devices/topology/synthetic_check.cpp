// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/topology/loaded_machine.h"

// Sizes of a synthetic machine, before hwloc builds it: its time grows faster than their square.
namespace artifex_devices {
namespace {

constexpr int64_t kMostPus = 4096;
constexpr int64_t kMostLevels = 100;
constexpr size_t kMostCharacters = size_t{64} << 10;

[[noreturn]] void refuse(const std::string& description, const std::string& why) {
  const bool is_long = description.size() > 200;
  fail(
      "from_synthetic: {:?}{} is no synthetic machine: {}; expected levels from the outside in, each type:count, that "
      "end in pu, such as \"pack:2 numa:2 core:4 pu:2\"",
      is_long ? description.substr(0, 200) : description, is_long ? "..." : "", why);
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
    i = description.find(end, i);
    if (i == std::string::npos) refuse(description, fmt::format("{} is not closed", what));
    ++i;
  };
  while (i < description.size()) {
    const char c = description[i];
    if (is_blank(c)) {
      ++i;
    } else if (c == '(') {
      skip_to(')', "a parenthesis");
    } else if (c == '[') {
      skip_to(']', "a bracket");
      attached += width;
      if (attached > kMostPus) refuse(description, fmt::format("it has more than {} memories", kMostPus));
    } else {
      const size_t begin = i;
      while (i < description.size() && !is_blank(description[i]) && description[i] != '(' && description[i] != '[') ++i;
      const std::string_view level = std::string_view(description).substr(begin, i - begin);
      const size_t colon = level.find(':');
      const std::string_view digits = colon == std::string_view::npos ? level : level.substr(colon + 1);
      int64_t count = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
      if (error == std::errc::result_out_of_range) count = INT64_MAX;
      if (error == std::errc::invalid_argument || end != digits.data() + digits.size() || count < 1) {
        refuse(description, fmt::format("level {:?} has no count of 1 or more", level));
      }
      width = checked_mul(width, count).value_or(INT64_MAX);
      if (width > kMostPus) {
        refuse(description, fmt::format("level {:?} makes more than {} PUs", level, kMostPus));
      }
      if (++levels > kMostLevels) refuse(description, fmt::format("it has more than {} levels", kMostLevels));
    }
  }
  if (levels == 0) refuse(description, "it has no level");
}

}  // namespace artifex_devices
