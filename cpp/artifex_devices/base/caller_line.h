// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace artifex_devices {

/// A line of the user's program.
struct CallerLine {
  std::string file;
  int line = 0;

  friend bool operator==(const CallerLine&, const CallerLine&) = default;
  friend auto operator<=>(const CallerLine&, const CallerLine&) = default;
};

/// Returns the current line of the calling thread, or nothing. Called without a lock; must not throw.
using CallerLineSource = std::optional<CallerLine> (*)();

/// Called once, by the binding of a language. Without a source lines are empty.
void set_caller_line_source(CallerLineSource source) noexcept;

/// The line of the user's program that called the library on this thread. The caller must hold no lock.
std::optional<CallerLine> caller_line();

}  // namespace artifex_devices
