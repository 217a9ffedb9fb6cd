// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_devices/array/array.h"

namespace artifex_devices {

/// The list of whole arrays of the process, oldest first. It is linked through the arrays and allocates nothing.
class LiveArrays {
 public:
  static void add(Array* array);
  static void remove(Array* array) noexcept;  // nothing if it is not in
  static std::vector<ArrayRef> all();
};

}  // namespace artifex_devices
