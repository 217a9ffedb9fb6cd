// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices::planner {

/// One operand or result of an einsum: "bsd" has the letters b, s and d. Letters are code points of UTF-8.
struct EinsumTerm {
  std::string text;
  std::vector<std::string> letters;
};

struct EinsumText {
  std::vector<EinsumTerm> inputs;
  EinsumTerm output;
  bool has_letters_only = true;  // no digits or signs
};

/// Splits "bsd,df->bsf" at the commas and the arrow; spaces do not count. Returns none without an arrow.
std::optional<EinsumText> parse_einsum(std::string_view text);

}  // namespace artifex_devices::planner
