// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/world_text.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMostWorldNodes = 1024;
constexpr int64_t kMostWorldPus = 1024;
constexpr int64_t kMostDevices = int64_t{1} << 24;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

// Removes a leading number and the blanks after it; returns nothing without digits.
std::optional<int64_t> take_number(std::string_view& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || text.front() == '-') return std::nullopt;
  if (error == std::errc::result_out_of_range) value = INT64_MAX;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  text = trimmed(text);
  return value;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text = trimmed(text.substr(word.size()));
  return true;
}

// Returns the call to write in place of texts such as "8 gpus" and "gpu:8", which hwloc would take for levels of a
// machine, or "" for other texts.
std::string call_for_devices(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  const bool has_letters = std::ranges::any_of(lower, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool names_devices = lower.starts_with("gpu") || lower.starts_with("cpu") || lower.starts_with("cuda");
  if (!has_letters || (lower.find(':') != std::string::npos && !names_devices)) return "";
  const size_t digit = lower.find_first_of("0123456789");
  std::string_view kind = digit == std::string::npos ? std::string_view() : std::string_view(lower).substr(digit);
  const int64_t count = std::clamp<int64_t>(take_number(kind).value_or(8), 1, kMostDevices);
  const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  if (has("gpu") || has("cuda")) return fmt::format("simulate({}, platform=\"gpu\")", count);
  if (digit != 0 || kind.empty() || has("cpu") || has("device")) return fmt::format("simulate({})", count);
  if (!take_word(kind, "x")) return fmt::format("simulate(\"{} x {}\") for GPUs of the catalogue", count, kind);
  return fmt::format("simulate(\"{} nodes x {}\")", count, kind.empty() ? "1" : kind);
}

}  // namespace

WorldText parse_world(const std::string& text) {
  std::string_view rest = trimmed(text);
  if (rest.empty()) {
    throw_error(
        "simulate: the world is an empty text; expected a number of devices, \"2 nodes x 4\", an hwloc synthetic "
        "string such as \"pack:2 numa:2 core:4 pu:2\", or the path of an hwloc XML file");
  }
  if (rest.ends_with(".xml") || rest.ends_with(".XML")) return {.xml_path = text};
  const std::string_view whole = rest;
  const auto as_synthetic = [&]() -> WorldText {
    if (const std::string call = call_for_devices(whole); !call.empty()) {
      throw_error(
          "simulate: {:?} is not a world; write {}; expected a number of devices, \"2 nodes x 4\", \"4 x h100\", an "
          "hwloc synthetic string such as \"pack:2 numa:2 core:4 pu:2\", or the path of an hwloc XML file",
          text, call);
    }
    return {.synthetic = std::string(whole)};
  };
  const std::optional<int64_t> first = take_number(rest);
  if (!first) return as_synthetic();
  const auto check_count = [&] {
    if (*first >= 1 && *first <= kMostDevices) return;
    throw_error("simulate: {:?} is not a number of devices; expected 1 to {}", text, kMostDevices);
  };
  if (rest.empty()) {
    check_count();
    return {.num_devices = first};
  }
  if (std::string_view kind = rest; take_word(kind, "x") || take_word(kind, "X")) {
    if (kind.empty() || (kind.front() >= '0' && kind.front() <= '9')) return as_synthetic();
    check_count();
    return {.num_devices = first, .device_kind = std::string(kind)};
  }
  if (!take_word(rest, "nodes") && !take_word(rest, "node")) return as_synthetic();
  std::optional<int64_t> each;
  if ((take_word(rest, "x") || take_word(rest, "*")) && !rest.empty()) each = take_number(rest);
  if (!take_word(rest, "devices")) take_word(rest, "device");
  if (!each || !rest.empty()) throw_error("simulate: {:?} is not a world; write it as in \"2 nodes x 4\"", text);
  const std::optional<int64_t> devices = checked_mul(*first, *each);
  if (*first < 1 || *each < 1 || *first > kMostWorldNodes || !devices || *devices > kMostDevices) {
    throw_error("simulate: {:?} has {} nodes with {} devices each; expected 1 to {} nodes and at most {} devices", text,
                *first, *each, kMostWorldNodes, kMostDevices);
  }
  // The number of cores is only displayed; hwloc's time grows more than quadratically with it.
  const int64_t cores = std::clamp<int64_t>(*each, 1, std::max<int64_t>(kMostWorldPus / *first, 1));
  return {.num_devices = devices, .synthetic = fmt::format("numa:{} core:{} pu:1", *first, cores)};
}

}  // namespace artifex_devices
