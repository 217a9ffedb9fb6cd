// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// Name of a mesh axis: any text in C++, any hashable object except None in Python. Interned: a comparison compares one
/// integer. The table of names is never freed.
class AxisName {
 public:
  AxisName() = default;
  explicit AxisName(std::string_view text);  // equal texts give equal names

  /// A name for an object that is not a text; messages print `repr`. Each call creates a new name: the caller maps
  /// objects to names (the bindings do, by Python equality).
  static AxisName foreign(std::string_view repr);

  int32_t id() const noexcept { return id_; }
  bool is_foreign() const;
  /// The text, or for a foreign name its repr.
  const std::string& text() const;
  /// Python's repr: 'data' in quotes; foreign names unchanged.
  std::string repr() const;

  friend bool operator==(AxisName, AxisName) = default;

 private:
  int32_t id_ = -1;
};

/// Stored, compared and printed as in JAX. shard_map is strict on Explicit axes.
enum class AxisType : uint8_t { kAuto, kExplicit, kManual };
std::string_view to_string(AxisType type) noexcept;  // "Auto", "Explicit", "Manual"

/// Names and sizes of mesh axes, major to minor, with no devices. Immutable.
/// Example: AbstractMesh({"x", "y"}, {2, 4}) has 8 positions; position 5 has coordinates (1, 1).
class AbstractMesh {
 public:
  AbstractMesh() = default;
  /// Empty `types` means Auto for all axes. Throws one InvalidArgument that lists all of: repeated names, sizes below
  /// 1, lists of different lengths, and a product that overflows.
  AbstractMesh(std::vector<AxisName> names, Dims sizes, std::vector<AxisType> types = {});

  const std::vector<AxisName>& axis_names() const noexcept { return names_; }
  const Dims& axis_sizes() const noexcept { return sizes_; }
  const std::vector<AxisType>& axis_types() const noexcept { return types_; }
  int64_t size() const noexcept { return size_; }
  int64_t rank() const noexcept { return sizes_.size(); }
  bool empty() const noexcept { return names_.empty(); }
  /// Index of the axis, or an empty optional.
  std::optional<int64_t> find(AxisName name) const noexcept;

  /// "'x': 2, 'y': 4"; names are quoted but not escaped, as in JAX
  std::string axes_text() const;
  /// "(Auto, Auto)", "(Auto,)", "()"
  std::string types_text() const;
  /// JAX's repr: "AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"
  std::string to_string() const;
  size_t hash() const noexcept;
  friend bool operator==(const AbstractMesh&, const AbstractMesh&) = default;

 private:
  std::vector<AxisName> names_;
  Dims sizes_;
  std::vector<AxisType> types_;
  int64_t size_ = 1;
};

}  // namespace artifex_devices
