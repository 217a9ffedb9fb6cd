// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/partition_spec.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

/// Levenshtein distance that ignores case, of at most the first 64 bytes.
int64_t edit_distance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 64;
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<int64_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// " (did you mean 'x'?)" with the most similar axis name, or "" when more than half of each name differs.
std::string suggestion(const AbstractMesh& mesh, AxisName name) {
  const AxisName* best = nullptr;
  int64_t best_distance = 0;
  for (const AxisName& candidate : mesh.axis_names()) {
    const int64_t distance = edit_distance(name.text(), candidate.text());
    const auto longest = static_cast<int64_t>(std::max(name.text().size(), candidate.text().size()));
    if (2 * distance > longest || (best && distance >= best_distance)) continue;
    best = &candidate;
    best_distance = distance;
  }
  return best ? fmt::format(" (did you mean {}?)", best->repr()) : "";
}

}  // namespace

void PartitionSpec::check(const AbstractMesh& mesh, std::string_view operation) const {
  std::unordered_map<int32_t, std::vector<size_t>> dimensions;  // of each axis
  std::vector<AxisName> order;
  for (size_t d = 0; d < entries_.size(); ++d) {
    for (const AxisName axis : entries_[d].axes) {
      auto& used = dimensions[axis.id()];
      if (used.empty()) order.push_back(axis);
      used.push_back(d);
    }
  }

  // As in JAX, repeated axes are reported before unknown ones.
  std::vector<std::string> repeated;
  std::vector<std::string> unknown;
  for (const AxisName axis : order) {
    const auto& used = dimensions[axis.id()];
    if (used.size() > 1 && used.front() == used.back()) {
      repeated.push_back(
          fmt::format("mesh axis {} is used {} times in dimension {}", axis.repr(), used.size(), used[0]));
    } else if (used.size() > 1) {
      repeated.push_back(fmt::format("mesh axis {} is used in dimensions {}", axis.repr(), fmt::join(used, " and ")));
    }
    if (!mesh.find(axis)) unknown.push_back(axis.repr() + suggestion(mesh, axis));
  }
  if (!repeated.empty()) {
    throw_error<DuplicateSpecError>(
        "{}: {} of {}; expected each mesh axis in at most one dimension; keep each axis in one place, or use None",
        operation, fmt::join(repeated, ", "), to_string());
  }
  if (!unknown.empty()) {
    throw_error(
        "{}: {} names axes that are not in the mesh: {}; expected axes of Mesh({}); correct the names or make a mesh "
        "with these axes",
        operation, to_string(), fmt::join(unknown, ", "), mesh.axes_text());
  }
}

std::string PartitionSpec::to_string() const {
  const auto entry_text = [](const SpecEntry& entry) -> std::string {
    if (entry.kind == SpecEntry::Kind::kNone) return "None";
    if (entry.kind == SpecEntry::Kind::kUnconstrained) return "UNCONSTRAINED";
    std::string text;
    for (const AxisName axis : entry.axes) text += (text.empty() ? "" : ", ") + axis.repr();
    return entry.axes.size() == 1 ? text : fmt::format("({})", text);
  };
  std::string text;
  for (const SpecEntry& entry : entries_) text += (text.empty() ? "" : ", ") + entry_text(entry);
  return fmt::format("P({}{})", text, entries_.size() == 1 ? "," : "");
}

size_t PartitionSpec::hash() const noexcept {
  size_t seed = entries_.size();
  for (const SpecEntry& entry : entries_) {
    seed = hash_mix(seed, static_cast<size_t>(entry.kind));
    seed = hash_mix(seed, entry.axes.size());
    for (const AxisName axis : entry.axes) seed = hash_mix(seed, static_cast<size_t>(axis.id()));
  }
  return seed;
}

}  // namespace artifex_devices
