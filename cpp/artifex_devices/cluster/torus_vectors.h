// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace artifex_devices {

/// Calls `visit(parts)` for all vectors whose values multiply to `size`, each a divisor of the value of `free` at its
/// place, in ascending lexicographic order.
template <class Visit>
void for_each_division(int64_t size, const std::vector<int64_t>& free, Visit&& visit) {
  std::vector<int64_t> parts(free.size(), 1);
  const auto go = [&](const auto& self, size_t place, int64_t left) -> void {
    if (place == free.size()) {
      if (left == 1) visit(static_cast<const std::vector<int64_t>&>(parts));
      return;
    }
    for (int64_t part = 1; part <= left && part <= free[place]; ++part) {
      if (left % part != 0 || free[place] % part != 0) continue;
      parts[place] = part;
      self(self, place + 1, left / part);
    }
    parts[place] = 1;
  };
  go(go, 0, size);
}

}  // namespace artifex_devices
