// SPDX-License-Identifier: Apache-2.0
#include "narrow.h"

#include <fmt/format.h>

#include <atomic>

#include "artifex_devices/base/throw_error.h"
#include "cpython_calls.h"
#include "errors.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

// Whether the process has warned about a narrowing.
std::atomic<bool> has_warned{false};

void warn_once(DType from, std::string_view operation, const std::string& path) {
  if (has_warned.exchange(true)) return;
  try {
    const py::str text = fmt::format(
        "{}: {} is {} and was narrowed to {}, because jax_enable_x64 is False; later arrays are narrowed without a "
        "warning; convert them yourself, or keep 64 bits by config.update('jax_enable_x64', True)",
        operation, path.empty() ? "the data" : "leaf " + path, name(from), name(narrow_dtype(from)));
    call_python(python_modules::kScopes, "_warn_narrowing", text);
  } catch (...) {
    has_warned = false;  // the warning became an error, and nothing was narrowed
    throw;
  }
}

bool is_python_number(py::handle object) {
  PyObject* raw = object.ptr();  // exact: np.float64 and np.complex128 are subclasses with their own dtype
  return PyLong_Check(raw) || PyFloat_CheckExact(raw) || PyComplex_CheckExact(raw);
}

}  // namespace

void narrow_leaf(Leaf& leaf, py::handle original, std::string_view operation, const std::string& path) {
  const DType from = leaf.view.dtype;
  DType to = narrow_dtype(from);
  if (PyLong_Check(original.ptr())) {
    to = DType::kInt32;
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(original.ptr(), &overflow);
    if (overflow != 0 || value < INT32_MIN || value > INT32_MAX) {
      throw_error<OverflowError>(
          "{}: the Python int {} is too large for int32; expected an int from -2**31 to 2**31 - 1; pass a float, or "
          "keep 64 bits by config.update('jax_enable_x64', True)",
          operation, py::str(original).cast<std::string>());
    }
  } else if (!is_python_number(original)) {
    warn_once(from, operation, path);
  }
  leaf = leaf_from_python(leaf.keep.attr("astype")(numpy_dtype(to)), operation);
}

void bind_narrow(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "narrowed",
      [](const py::object& x, const std::string& operation, const std::string& path) -> py::object {
        Leaf leaf = leaf_from_python(x, operation);
        if (must_narrow(leaf.view.dtype)) narrow_leaf(leaf, x, operation, path);
        return leaf.keep;
      },
      py::arg("x"), py::arg("operation"), py::arg("path") = "",
      "Returns the ndarray to place in this context for an array or number; narrows 64-bit data if x64 "
      "is off.");
}

}  // namespace artifex_devices::bindings
