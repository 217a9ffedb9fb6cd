// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// The name of a mesh axis: any text in C++, any hashable but None in Python. Interned, so that comparing is one
/// integer; the table of names only grows.
class AxisName {
 public:
  AxisName() = default;
  explicit AxisName(std::string_view text);  // equal texts give equal names

  /// A name for something that is no text; `shown` is what messages print. Each call makes a new name: who calls keeps
  /// the mapping (the bindings do, by Python equality).
  static AxisName foreign(std::string_view shown);

  int32_t id() const noexcept { return id_; }
  bool is_foreign() const;
  /// The text itself, for a foreign name what it is shown as.
  const std::string& text() const;
  /// As Python's repr shows it: 'data' in quotes, foreign names as given.
  std::string repr() const;

  friend bool operator==(AxisName, AxisName) = default;

 private:
  int32_t id_ = -1;
};

/// Kept, compared and shown as in JAX; Explicit meshes make shard_map strict.
enum class AxisType : uint8_t { kAuto, kExplicit, kManual };
std::string_view to_string(AxisType type) noexcept;  // "Auto", "Explicit", "Manual"

/// Names and sizes of mesh axes, major to minor, with no devices. Immutable.
/// Example: AbstractMesh({"x", "y"}, {2, 4}) has 8 positions; position 5 has coordinates (1, 1).
class AbstractMesh {
 public:
  AbstractMesh() = default;
  /// `types` empty: all Auto. Throws InvalidArgument for a repeated name, a size below 1, lists of unequal length, or a
  /// product that overflows; all that is wrong in one message.
  AbstractMesh(std::vector<AxisName> names, Dims sizes, std::vector<AxisType> types = {});

  const std::vector<AxisName>& axis_names() const noexcept { return names_; }
  const Dims& axis_sizes() const noexcept { return sizes_; }
  const std::vector<AxisType>& axis_types() const noexcept { return types_; }
  int64_t size() const noexcept { return size_; }
  int64_t rank() const noexcept { return sizes_.size(); }
  bool empty() const noexcept { return names_.empty(); }
  /// Where the axis stands, or nothing.
  std::optional<int64_t> find(AxisName name) const noexcept;
  AbstractMesh with_axis_types(AxisType type) const;

  /// "'x': 2, 'y': 4"; names stand in quotes as they are, as in JAX
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
