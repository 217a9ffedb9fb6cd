// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <unordered_map>

#include "artifex_devices/hlo/source_place.h"

namespace artifex_devices::hlo {

/// The locations of MLIR text: lines `#loc5 = loc("step.py":12:6 to :46)`, and names and call sites that refer to
/// others.
class MlirLocations {
 public:
  explicit MlirLocations(std::string_view text);

  /// The place of a line that ends with `loc(#loc22)` or has its location inside the brackets.
  SourcePlace place_of_line(std::string_view line) const;

 private:
  std::unordered_map<std::string_view, std::string_view> locations_;  // by name, such as "#loc22"
};

}  // namespace artifex_devices::hlo
