// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "artifex_devices/base/dtype.h"
#include "numpy_bridge.h"
#include "scopes.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Makes a leaf 32-bit that the calling context does not keep at 64 bits, as NumPy's astype does: integers wrap, floats
/// become inf. Python ints that do not fit are an OverflowError. The first narrowing of data with a type of its own in
/// the process warns, naming `path_of()`.
void narrow_leaf(Leaf& leaf, py::handle original, std::string_view operation, const std::string& path);

/// Whether narrow_leaf has something to do.
inline bool must_narrow(DType dtype) { return scopes_matter() && narrow_dtype(dtype) != dtype && !x64_enabled(); }

void bind_narrow(py::module_& module);

}  // namespace artifex_devices::bindings
