// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// Whether an object can be iterated over. Unlike pybind11's function it passes on errors of __iter__ other than
/// TypeError.
inline bool is_iterable(py::handle object) {
  const auto iterator = py::reinterpret_steal<py::object>(PyObject_GetIter(object.ptr()));
  if (iterator) return true;
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  return false;
}

/// Clears the error with which an object refused a buffer. Throws errors of other classes, which a signal handler may
/// have raised while the buffer was awaited.
inline void clear_refused_buffer() {
  const bool is_refused = PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_TypeError) ||
                          PyErr_ExceptionMatches(PyExc_ValueError);  // of an ndarray that is not contiguous
  if (!is_refused) throw py::error_already_set();
  PyErr_Clear();
}

constexpr int64_t kMaxDimensions = 64;  // NumPy's

/// Calls `each` with the items of an iterable that has one for each dimension. Throws InvalidArgument after 64 of them,
/// as an iterator may have no end.
template <class Each>
void for_each_dimension(py::handle object, std::string_view operation, std::string_view what, Each each) {
  int64_t count = 0;
  for (const py::handle item : py::reinterpret_borrow<py::iterable>(object)) {
    if (++count > kMaxDimensions) {
      const Py_ssize_t size = PyObject_Size(object.ptr());
      PyErr_Clear();  // an iterator has no size
      const std::string found = size > 0 ? std::to_string(size) : fmt::format("more than {}", kMaxDimensions);
      throw_error("{}: {} has {} entries; expected at most {}, NumPy's limit of dimensions; join dimensions", operation,
                  what, found, kMaxDimensions);
    }
    each(item);
  }
}

/// Copies the bytes of a bytes, bytearray, memoryview or other contiguous buffer. Throws TypeMismatch for other objects
/// and InvalidArgument for more than `max_bytes`.
inline std::string bytes_argument(py::handle object, std::string_view operation, int64_t max_bytes) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_SIMPLE) != 0) {
    clear_refused_buffer();
    throw_error<TypeMismatch>("{}: the argument is of type {}; expected bytes; pass the result of serialize()",
                              operation, Py_TYPE(object.ptr())->tp_name);
  }
  const Py_ssize_t size = view.len;
  std::string bytes;
  if (size <= max_bytes) bytes.assign(static_cast<const char*>(view.buf), static_cast<size_t>(size));
  PyBuffer_Release(&view);
  if (size > max_bytes)
    throw_error("{}: the argument has {} bytes; expected at most {}; pass the result of serialize()", operation, size,
                max_bytes);
  return bytes;
}

}  // namespace artifex_devices::bindings
