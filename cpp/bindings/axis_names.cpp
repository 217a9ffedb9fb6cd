// SPDX-License-Identifier: Apache-2.0
#include "axis_names.h"

#include <unordered_map>

#include "artifex_devices/base/throw_error.h"
#include "iterable.h"
#include "shown.h"

namespace artifex_devices::bindings {
namespace {

// Both directions; Python objects, never destroyed.
struct AxisNameTable {
  PyObject* id_of_object = PyDict_New();
  std::unordered_map<int32_t, std::pair<AxisName, PyObject*>> by_id;
};

AxisNameTable& table() {
  static auto* made = new AxisNameTable;
  return *made;
}

// The module is loaded under the GIL; later, Python code run by PyDict_New could hand it on in the middle.
[[maybe_unused]] const AxisNameTable& g_names_made_at_load = table();

}  // namespace

AxisName axis_name_from_python(py::handle object, std::string_view operation) {
  AxisNameTable& known = table();
  if (PyObject* id = PyDict_GetItemWithError(known.id_of_object, object.ptr())) {
    return known.by_id.at(static_cast<int32_t>(PyLong_AsLong(id))).first;
  }
  if (PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();  // the object's own
    PyErr_Clear();
    throw_error<TypeMismatch>(
        "{}: an axis name of type {} is not hashable; expected text or another hashable, got {}; use a str such as "
        "'data'",
        operation, Py_TYPE(object.ptr())->tp_name, shown(object));
  }
  if (object.is_none()) {
    throw_error(
        "{}: None is no axis name; expected text or another hashable, got None; give the axis a name such as 'data'",
        operation);
  }
  // Half a character (a lone surrogate) has no UTF-8: such text is a name as any other hashable is.
  const bool is_text = PyUnicode_Check(object.ptr()) && PyUnicode_AsUTF8(object.ptr()) != nullptr;
  PyErr_Clear();
  const AxisName name = is_text ? AxisName(object.cast<std::string>()) : AxisName::foreign(shown(object));
  known.by_id[name.id()] = {name, py::object(py::reinterpret_borrow<py::object>(object)).release().ptr()};
  if (PyDict_SetItem(known.id_of_object, object.ptr(), py::int_(name.id()).ptr()) < 0) throw py::error_already_set();
  return name;
}

py::object axis_name_to_python(AxisName name) {
  const auto found = table().by_id.find(name.id());
  if (found != table().by_id.end()) return py::reinterpret_borrow<py::object>(found->second.second);
  return py::str(name.text());  // made in C++
}

std::vector<AxisName> axis_names_from_python(py::handle object, std::string_view operation) {
  std::vector<AxisName> names;
  if (PyUnicode_Check(object.ptr())) {
    names.push_back(axis_name_from_python(object, operation));
    return names;
  }
  if (!is_iterable(object)) {
    throw_error<TypeMismatch>(
        "{}: axis_names is of type {}; expected a tuple of names, got {}; write ('data', 'model')", operation,
        Py_TYPE(object.ptr())->tp_name, shown(object));
  }
  for (const py::handle item : py::reinterpret_borrow<py::iterable>(object)) {
    names.push_back(axis_name_from_python(item, operation));
  }
  return names;
}

py::tuple axis_names_to_python(const std::vector<AxisName>& names) {
  py::tuple result(names.size());
  for (size_t i = 0; i < names.size(); ++i) result[i] = axis_name_to_python(names[i]);
  return result;
}

}  // namespace artifex_devices::bindings
