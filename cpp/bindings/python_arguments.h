// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/typing.h>

#include <string>
#include <string_view>

#include "artifex_devices/base/throw_error.h"
#include "gil.h"
#include "pybind.h"
#include "python_text.h"

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

/// Clears the error with which an object refused a buffer. Rethrows errors of other classes: a signal handler may have
/// raised them while the buffer was awaited.
inline void clear_refused_buffer() {
  const bool is_refused = PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_TypeError) ||
                          PyErr_ExceptionMatches(PyExc_ValueError);  // of an ndarray that is not contiguous
  if (!is_refused) throw py::error_already_set();
  PyErr_Clear();
}

/// An argument of the type that the stub shows, which pybind11 does not check: the functions below do.
using IntArgument = py::typing::Union<py::int_>;
using NumberArgument = py::typing::Union<py::float_>;
using TextArgument = py::typing::Union<py::str>;

/// The text of a str argument, with escapes for lone surrogates. Throws TypeMismatch for other objects.
inline std::string text_from_python(py::handle object, std::string_view operation, std::string_view what) {
  if (!PyUnicode_Check(object.ptr())) {
    throw_error<TypeMismatch>("{}: {} is of type {}; expected a str, got {}; pass a str", operation, what,
                              Py_TYPE(object.ptr())->tp_name, safe_repr(object));
  }
  return utf8_of(object);
}

/// The number of an argument that is a real number. Throws TypeMismatch for other objects.
inline double number_from_python(py::handle object, std::string_view operation, std::string_view what) {
  if (PyNumber_Check(object.ptr()) == 0 || PyComplex_Check(object.ptr())) {
    throw_error<TypeMismatch>("{}: {} is of type {}; expected a number, got {}; pass a number such as 1.0", operation,
                              what, Py_TYPE(object.ptr())->tp_name, safe_repr(object));
  }
  const double value = sleeping_at_exit([&] { return PyFloat_AsDouble(object.ptr()); });
  if (value == -1.0 && PyErr_Occurred()) throw py::error_already_set();
  return value;
}

/// The C++ value of an object. Throws TypeMismatch for objects that are not an instance of T's class.
template <class T>
T& value_from_python(py::handle object, std::string_view operation, std::string_view what, std::string_view expected,
                     std::string_view example) {
  if (!py::isinstance<T>(object)) {
    throw_error<TypeMismatch>("{}: {} is of type {}; expected {}, got {}; pass {}", operation, what,
                              Py_TYPE(object.ptr())->tp_name, expected, safe_repr(object), example);
  }
  return object.cast<T&>();
}

constexpr int64_t kMaxDimensions = 64;  // NumPy's

/// Calls `each` with the items of an iterable that has one for each dimension. Throws InvalidArgument after 64 items,
/// because an iterator may have no end.
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
