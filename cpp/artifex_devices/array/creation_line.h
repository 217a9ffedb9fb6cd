// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "artifex_devices/array/array.h"

namespace artifex_devices {

/// Where in the user's program an array was made.
struct CreationLine {
  std::string file;
  int line = 0;
};

/// The creation lines of live arrays, kept beside them while config().trace_allocations is 1. Arrays made before, and
/// shards taken out, have none.
class CreationLines {
 public:
  /// Tells the line that the calling thread is at, or nothing. Called without a lock held; must not throw.
  using Source = std::optional<CreationLine> (*)();
  /// Once, by whoever embeds the library in a language; without a source nothing is kept.
  static void set_source(Source source);

  static std::optional<CreationLine> of(const Array& array);

 private:
  friend class Array;
  static void add(Array* array) noexcept;
  static void remove(const Array* array) noexcept;
};

}  // namespace artifex_devices
