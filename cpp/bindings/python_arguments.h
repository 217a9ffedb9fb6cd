// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

#include "artifex_devices/base/error.h"

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

/// A copy of what a bytes, bytearray, memoryview or other contiguous buffer holds. Throws TypeMismatch.
inline std::string bytes_argument(py::handle object, std::string_view operation, int64_t most) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    throw_error<TypeMismatch>("{}: the argument is of type {}; expected bytes; give what serialize() returned",
                              operation, Py_TYPE(object.ptr())->tp_name);
  }
  const Py_ssize_t size = view.len;
  std::string bytes;
  if (size <= most) bytes.assign(static_cast<const char*>(view.buf), static_cast<size_t>(size));
  PyBuffer_Release(&view);
  if (size > most)
    throw_error("{}: there are {} bytes; expected {} at most; give what serialize() returned", operation, size, most);
  return bytes;
}

}  // namespace artifex_devices::bindings
