// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "artifex_devices/array/array.h"

namespace artifex_devices {

/// The line of the user's program that created an array.
struct CreationLine {
  std::string file;
  int line = 0;
};

/// The creation lines of live arrays, recorded while config().trace_allocations is 1. Arrays created before, and shards
/// of arrays, have none.
class CreationLines {
 public:
  /// Returns the current line of the calling thread, or nothing. Called without a lock; must not throw.
  using Source = std::optional<CreationLine> (*)();
  /// Called once, by the binding of a language; without a source no line is recorded.
  static void set_source(Source source);

  static std::optional<CreationLine> of(const Array& array);

 private:
  friend class Array;
  static void add(Array* array) noexcept;
  static void remove(const Array* array) noexcept;
};

}  // namespace artifex_devices
