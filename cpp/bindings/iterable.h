// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Whether an object can be iterated over. pybind11's own question takes each error for a no: here only TypeError is
/// one, and what else a caller's __iter__ raises passes.
inline bool is_iterable(py::handle object) {
  const auto iterator = py::reinterpret_steal<py::object>(PyObject_GetIter(object.ptr()));
  if (iterator) return true;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  return false;
}

}  // namespace artifex_devices::bindings
