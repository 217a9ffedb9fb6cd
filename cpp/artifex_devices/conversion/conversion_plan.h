// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/conversion/region.h"
#include "artifex_devices/conversion/rule.h"

namespace artifex_devices {

/// Name, shape and dtype of an array of a checkpoint.
struct NamedType {
  std::string name;
  Dims shape;
  DType dtype = DType::kFloat32;
};

struct PlanArguments {
  std::string operation;  // the public function, for messages
  std::vector<NamedType> sources;
  std::vector<Rule> rules;
  std::optional<DType> floats;                 // dtype of all arrays of floating-point numbers after the rules
  std::optional<std::vector<NamedType>> like;  // what the target must be; without it, everything is the target
  std::vector<std::string> allow_missing;      // patterns of names in `like` that may have no source
  std::vector<std::string> allow_extra;        // patterns of names that `like` may lack
};

struct PlannedArray {
  NamedType type;
  std::vector<Region> regions;  // disjoint, and together the array
};

/// A conversion before a byte is read: each target array as boxes of source arrays.
struct ConversionPlan {
  /// Bytes of a piece that the executor reads, changes and writes at a time. Each worker has two.
  static constexpr int64_t kPieceBytes = int64_t{64} << 20;

  std::vector<NamedType> sources;
  std::vector<PlannedArray> targets;  // in the order of `like`, else of their names
  std::vector<std::string> missing;   // names in `like` without a source, which allow_missing names
  std::vector<std::string> extra;     // names that `like` lacks, which allow_extra names
  std::vector<std::string> unread;    // names of sources that no target reads
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;

  /// Largest number of bytes of an element of a target and of its sources.
  int64_t itemsize_of(const PlannedArray& target) const;
  /// Largest number of bytes that the pieces of so many workers take.
  int64_t memory_bytes(int64_t workers) const;
};

/// Throws InvalidArgument that lists all differences between the result of the rules and `like`.
ConversionPlan plan_conversion(const PlanArguments& arguments);

/// The table of a dry run: a line for each target, what is left over on either side, and the bytes.
std::string to_string(const ConversionPlan& plan, int64_t workers, int64_t scratch_bytes);

}  // namespace artifex_devices
