// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Whether the interpreter has begun to go down.
bool exit_has_begun() noexcept;
void begin_exit() noexcept;

/// For a thread that would enter Python after exit began: until the process is gone.
[[noreturn]] void sleep_to_the_end() noexcept;

void bind_late_thread(py::module_& module);

}  // namespace artifex_devices::bindings
