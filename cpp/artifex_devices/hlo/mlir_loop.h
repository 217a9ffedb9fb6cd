// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace artifex_devices::hlo {

/// Integer constants of a function of MLIR text, by name.
using MlirConstants = std::unordered_map<std::string_view, int64_t>;

/// A `stablehlo.while` while its condition and body are read. Names inside are used again by other loops, so it has
/// numbers in place of the names of constants.
class MlirLoop {
 public:
  /// "stablehlo.while(%iterArg = %c, ...) : types".
  MlirLoop(std::string_view operation, const MlirConstants& constants);

  /// "stablehlo.compare LT, %iterArg, %c_1, SIGNED : types" of the condition.
  void read_comparison(std::string_view operation, const MlirConstants& constants);
  /// "stablehlo.add %iterArg, %c_1 : type" of the body, which `result` names.
  void read_sum(std::string_view result, std::string_view operation, const MlirConstants& constants);
  /// The operands of the body's return.
  void set_returned(std::string_view values) { returned_ = values; }

  /// The passes of a loop whose counter goes from a constant by a constant to a constant.
  std::optional<int64_t> trips() const;

 private:
  struct Element {
    std::string_view name;
    std::optional<int64_t> first;
  };
  std::vector<Element> state_;
  std::string_view counter_;
  std::optional<int64_t> limit_;
  std::unordered_map<std::string_view, int64_t> sums_;  // "%28" is the counter and this number
  std::string_view returned_;
};

}  // namespace artifex_devices::hlo
