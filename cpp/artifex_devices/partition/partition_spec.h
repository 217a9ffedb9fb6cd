// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/partition/abstract_mesh.h"

namespace artifex_devices {

/// Sharding of one dimension: not sharded, sharded over mesh axes (major to minor), or left open.
struct SpecEntry {
  enum class Kind : uint8_t { kNone, kAxes, kUnconstrained };
  Kind kind = Kind::kNone;
  std::vector<AxisName> axes;

  SpecEntry() = default;
  /// An empty list of axes equals None, as in JAX: P(()) == P(None).
  explicit SpecEntry(std::vector<AxisName> names)
      : kind(names.empty() ? Kind::kNone : Kind::kAxes), axes(std::move(names)) {}
  explicit SpecEntry(AxisName name) : kind(Kind::kAxes), axes{name} {}
  static SpecEntry unconstrained() {
    SpecEntry entry;
    entry.kind = Kind::kUnconstrained;
    return entry;
  }
  friend bool operator==(const SpecEntry&, const SpecEntry&) = default;
};

/// One entry for each dimension. Dimensions without an entry are not sharded. Trailing Nones count in ==, as in JAX.
class PartitionSpec {
 public:
  PartitionSpec() = default;
  explicit PartitionSpec(std::vector<SpecEntry> entries) : entries_(std::move(entries)) {}

  const std::vector<SpecEntry>& entries() const noexcept { return entries_; }
  int64_t rank() const noexcept { return static_cast<int64_t>(entries_.size()); }

  /// Throws InvalidArgument for axes that `mesh` does not have (nearest names suggested), DuplicateSpecError for an
  /// axis used twice.
  void check(const AbstractMesh& mesh, std::string_view operation) const;

  /// JAX's repr: "P('x', None, ('y', 'z'))", "P('x',)", "P()".
  std::string to_string() const;
  size_t hash() const noexcept;
  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;

 private:
  std::vector<SpecEntry> entries_;
};

}  // namespace artifex_devices
