// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pybind.h"

namespace artifex_devices::bindings {

/// A line of the user's program.
struct CallerPlace {
  std::string_view file;
  int line = 0;
  PyObject* file_object = nullptr;  // borrowed; the str that `file` views, or null
};

/// The line of the program that called into the package on this thread: that of the innermost Python frame outside the
/// package, or else the line that started the thread. Needs the GIL; valid until it is released. The file is empty
/// without a frame. Leaves no error behind.
CallerPlace caller_place();

}  // namespace artifex_devices::bindings
