// SPDX-License-Identifier: Apache-2.0
#include "python_text.h"

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

}  // namespace

std::string utf8_of(py::handle text) {
  const auto bytes = py::reinterpret_steal<py::object>(
      text ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
  if (!bytes) throw py::error_already_set();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

py::str text_of_bytes(std::string_view bytes) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

py::object text_or_none(std::string_view bytes) {
  return bytes.empty() ? py::object(py::none()) : text_of_bytes(bytes);
}

std::string safe_repr(py::handle object) {
  const auto text = py::reinterpret_steal<py::object>(sleeping_at_exit([&] { return PyObject_Repr(object.ptr()); }));
  if (!text) {
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
    const py::error_already_set raised;
    const std::string_view kind = reinterpret_cast<PyTypeObject*>(raised.type().ptr())->tp_name;
    return fmt::format("<{}, whose repr raised {}>", class_of(object), kind.substr(kind.rfind('.') + 1));
  }
  const Py_ssize_t size = PyUnicode_GET_LENGTH(text.ptr());
  if (size <= kMaxLength) return utf8_of(text);
  return utf8_of(part(text, 0, kFirst)) + " ... " + utf8_of(part(text, size - kLast, size));
}

void bind_safe_repr(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "safe_repr", [](const py::object& object) { return safe_repr(object); }, py::arg("object"), py::pos_only(),
      "Returns the repr of an object for messages: shortened if it is long, replaced if it raises.");
}

}  // namespace artifex_devices::bindings
