// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/conversion/conversion_plan.h"

namespace artifex_devices {
namespace {

constexpr size_t kColumns = 4;
using Row = std::array<std::string, kColumns>;

// "a", "a, b" or "a, ..., z (32 arrays)".
std::string sources_text(const ConversionPlan& plan, const PlannedArray& target) {
  std::vector<int64_t> sources;
  bool has_constant = false;
  for (const Region& region : target.regions) {
    has_constant = has_constant || region.source == Region::kConstant;
    if (region.source != Region::kConstant) sources.push_back(region.source);
  }
  std::vector<int64_t> unique;
  std::vector<bool> is_seen(plan.sources.size());
  for (const int64_t source : sources) {
    if (is_seen[static_cast<size_t>(source)]) continue;
    is_seen[static_cast<size_t>(source)] = true;
    unique.push_back(source);
  }
  const auto name_of = [&](int64_t source) { return printable(plan.sources[static_cast<size_t>(source)].name); };
  std::string text = has_constant ? "a constant" : "";
  if (unique.size() <= 2) {
    for (const int64_t source : unique) text += (text.empty() ? "" : ", ") + name_of(source);
    return text;
  }
  return text + fmt::format("{}{}, ..., {} ({} arrays)", text.empty() ? "" : ", ", name_of(unique.front()),
                            name_of(unique.back()), unique.size());
}

// Whether loops are in another order than in the source.
bool is_transposed(const Region& region) {
  return !std::ranges::is_sorted(region.loops, std::ranges::greater{}, &RegionLoop::stride);
}

std::string changes_text(const PlannedArray& target) {
  if (target.regions.empty()) return "";
  const Region& first = target.regions.front();
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (is_transposed(first)) add("transposed");
  for (const ValueChange& change : first.changes) {
    add(change.cast ? fmt::format("cast to {}", name(*change.cast)) : fmt::format("times {}", change.factor));
  }
  if (target.regions.size() > 1) add(fmt::format("{} boxes", target.regions.size()));
  return text;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ", ") + printable(each);
  return names.empty() ? "none" : text;
}

}  // namespace

std::string to_string(const ConversionPlan& plan, int64_t workers, int64_t scratch_bytes) {
  std::vector<Row> rows = {{"target", "dtype and shape", "source", "changes"}};
  for (const PlannedArray& target : plan.targets) {
    rows.push_back({printable(target.type.name),
                    fmt::format("{}{}", name(target.type.dtype), to_string(target.type.shape)),
                    sources_text(plan, target), changes_text(target)});
  }
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += fmt::format("target arrays without a source: {}\n", names_text(plan.missing));
  text += fmt::format("arrays that the target lacks: {}\n", names_text(plan.extra));
  text += fmt::format("source arrays that are not read: {}\n", names_text(plan.unread));
  text += fmt::format("reads {}, writes {}; needs at most {} of memory for the data ({} workers)",
                      bytes_text(plan.bytes_read), bytes_text(plan.bytes_written),
                      bytes_text(plan.memory_bytes(workers)), workers);
  if (scratch_bytes > 0) {
    text += fmt::format(", and {} of disk beside the target for the tiles of a transpose", bytes_text(scratch_bytes));
  }
  return text;
}

}  // namespace artifex_devices
