// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

/// Makes the functions that pickles name plain ones, which a pickle names as `artifex_devices._core` and their name.
/// pybind11 3 has its own functions pickled as a call of eval, which an unpickler with a list of what it allows
/// refuses. Last of all that is bound.
void name_by_pickles(const pybind11::module_& module);

}  // namespace artifex_devices::bindings
