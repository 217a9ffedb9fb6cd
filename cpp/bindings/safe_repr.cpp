// SPDX-License-Identifier: Apache-2.0
#include "safe_repr.h"

#include <fmt/format.h>

#include <string_view>

#include "gil.h"

namespace artifex_devices::bindings {
namespace {

constexpr Py_ssize_t kMaxLength = 500;
constexpr Py_ssize_t kFirst = 400;
constexpr Py_ssize_t kLast = 80;

std::string_view class_of(py::handle object) {
  const std::string_view full = Py_TYPE(object.ptr())->tp_name;
  return full.substr(full.rfind('.') + 1);
}

py::object part(const py::object& text, Py_ssize_t from, Py_ssize_t to) {
  return py::reinterpret_steal<py::object>(PyUnicode_Substring(text.ptr(), from, to));
}

// A lone surrogate has no UTF-8 and is escaped by its number.
std::string utf8(const py::object& text) {
  const auto bytes = py::reinterpret_steal<py::object>(
      text ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
  if (!bytes) throw py::error_already_set();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

}  // namespace

std::string safe_repr(py::handle object) {
  const auto text = py::reinterpret_steal<py::object>(sleeping_at_exit([&] { return PyObject_Repr(object.ptr()); }));
  if (!text) {
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
    const py::error_already_set raised;
    const std::string_view kind = reinterpret_cast<PyTypeObject*>(raised.type().ptr())->tp_name;
    return fmt::format("<{}, whose repr raised {}>", class_of(object), kind.substr(kind.rfind('.') + 1));
  }
  const Py_ssize_t size = PyUnicode_GET_LENGTH(text.ptr());
  if (size <= kMaxLength) return utf8(text);
  return utf8(part(text, 0, kFirst)) + " ... " + utf8(part(text, size - kLast, size));
}

void bind_safe_repr(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "safe_repr", [](const py::object& object) { return safe_repr(object); }, py::arg("object"), py::pos_only(),
      "Returns the repr of an object for messages: shortened if it is long, replaced if it raises.");
}

}  // namespace artifex_devices::bindings
