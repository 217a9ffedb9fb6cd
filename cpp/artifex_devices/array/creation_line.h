// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/caller_line.h"

namespace artifex_devices {

/// The lines of the user's program that created live arrays, recorded while config().trace_allocations is 1. Arrays
/// created before, and shards of arrays, have none.
class CreationLines {
 public:
  static std::optional<CallerLine> of(const Array& array);

 private:
  friend class Array;
  static void add(Array* array) noexcept;
  static void remove(const Array* array) noexcept;
};

}  // namespace artifex_devices
