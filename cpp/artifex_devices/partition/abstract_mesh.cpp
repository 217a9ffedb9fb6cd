// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/abstract_mesh.h"

#include <unordered_set>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

std::string_view to_string(AxisType type) noexcept {
  switch (type) {
    case AxisType::kAuto:
      return "Auto";
    case AxisType::kExplicit:
      return "Explicit";
    case AxisType::kManual:
      return "Manual";
  }
  return "?";
}

AbstractMesh::AbstractMesh(std::vector<AxisName> names, Dims sizes, std::vector<AxisType> types)
    : names_(std::move(names)), sizes_(std::move(sizes)), types_(std::move(types)) {
  const auto count = static_cast<int64_t>(names_.size());
  if (types_.empty()) types_.assign(names_.size(), AxisType::kAuto);

  std::vector<std::string> wrong;
  if (count != sizes_.size()) {
    wrong.push_back(
        fmt::format("{} axis names but {} axis sizes {}", count, sizes_.size(), artifex_devices::to_string(sizes_)));
  }
  if (types_.size() != names_.size())
    wrong.push_back(fmt::format("{} axis names but {} axis types", count, types_.size()));
  std::unordered_set<int32_t> seen;
  std::unordered_set<int32_t> reported;
  for (const AxisName name : names_) {
    if (!seen.insert(name.id()).second && reported.insert(name.id()).second) {
      wrong.push_back(fmt::format("axis name {} is given more than once", name.repr()));
    }
  }
  bool positive = true;
  for (int64_t i = 0; i < sizes_.size(); ++i) {
    if (sizes_[i] >= 1) continue;
    positive = false;
    wrong.push_back(i < count ? fmt::format("axis {} has size {}", names_[i].repr(), sizes_[i])
                              : fmt::format("axis number {} has size {}", i, sizes_[i]));
  }
  for (int64_t i = 0; positive && i < sizes_.size(); ++i) {
    if (const auto product = checked_mul(size_, sizes_[i])) {
      size_ = *product;
    } else {
      wrong.push_back(
          fmt::format("the product of the sizes {} does not fit 63 bits", artifex_devices::to_string(sizes_)));
      break;
    }
  }
  if (!wrong.empty()) {
    throw_error(
        "AbstractMesh: {}; expected distinct names with one size of 1 or more and one type for each; correct the axes",
        fmt::join(wrong, "; "));
  }
}

std::optional<int64_t> AbstractMesh::find(AxisName name) const noexcept {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

std::string AbstractMesh::axes_text() const {
  std::string text;
  for (int64_t i = 0; i < rank(); ++i) {
    text += fmt::format("{}'{}': {}", i == 0 ? "" : ", ", names_[i].text(), sizes_[i]);
  }
  return text;
}

std::string AbstractMesh::types_text() const {
  std::string text;
  for (size_t i = 0; i < types_.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", artifex_devices::to_string(types_[i]));
  }
  return types_.size() == 1 ? fmt::format("({},)", text) : fmt::format("({})", text);
}

std::string AbstractMesh::to_string() const {
  return fmt::format("AbstractMesh({}, axis_types={})", empty() ? "()" : axes_text(), types_text());
}

size_t AbstractMesh::hash() const noexcept {
  size_t seed = hash_value(sizes_);
  for (const AxisName name : names_) seed = hash_mix(seed, static_cast<size_t>(name.id()));
  for (const AxisType type : types_) seed = hash_mix(seed, static_cast<size_t>(type));
  return seed;
}

}  // namespace artifex_devices
