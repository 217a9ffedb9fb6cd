// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/conversion/conversion_plan.h"
#include "artifex_devices/conversion/region.h"

namespace artifex_devices {

/// What one box of a source contributes to one box of a target. In memory, both boxes are dense and row-major.
struct ConversionPart {
  int64_t source = 0;      // index in the sources of the plan, or Region::kConstant
  IndexDomain source_box;  // of no dimension for a constant
  IndexDomain target_box;
  Dims sizes;           // of the loops of the copy
  Dims source_strides;  // in elements
  Dims target_strides;
  int64_t target_offset = 0;  // of the first element; in the source it is the first of the box
  DType source_dtype = DType::kFloat32;
  DType target_dtype = DType::kFloat32;
  std::vector<ValueChange> changes;
  std::string constant;  // bytes of one element
};

/// Parts that together write each element of a box of a target once. A box of a source has elements that no target
/// needs only if they are so close to the others that a disk reads them anyway.
std::vector<ConversionPart> parts_of(const ConversionPlan& plan, const PlannedArray& target, const IndexDomain& box);

/// Returns whether the memory of both boxes has the same bytes, so that nothing needs to be copied.
bool is_identity(const ConversionPart& part) noexcept;

/// Copies the elements of a part from the memory of its source box, or from the constant, to the memory of the target
/// box, and changes their values. Bits are kept where nothing changes. `can_change_values` must be
/// true.
void copy_part(const ConversionPart& part, const std::byte* source, std::byte* target);

}  // namespace artifex_devices
