// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

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
