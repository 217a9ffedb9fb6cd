// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "artifex_devices/base/dtype.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "scopes.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Narrows a 64-bit leaf to 32 bits where x64 is off, as NumPy's astype does: integers wrap, floats become inf. Raises
/// OverflowError for Python ints that do not fit. The first narrowing of a typed array in the process warns, with the
/// leaf's `path`.
void narrow_leaf(Leaf& leaf, py::handle original, std::string_view operation, const std::string& path);

/// Whether data of `dtype` must be narrowed in the calling context.
inline bool must_narrow(DType dtype) { return scopes_matter() && narrow_dtype(dtype) != dtype && !x64_enabled(); }

[[gnu::cold]] void bind_narrow(py::module_& module);

}  // namespace artifex_devices::bindings
