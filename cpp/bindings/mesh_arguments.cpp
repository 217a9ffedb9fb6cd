// SPDX-License-Identifier: Apache-2.0
#include "mesh_arguments.h"

#include <unordered_map>

#include "artifex_devices/base/throw_error.h"
#include "cpython_calls.h"
#include "python_arguments.h"
#include "safe_repr.h"

namespace artifex_devices::bindings {
namespace {

// Maps in both directions. Holds Python objects; never destroyed.
struct AxisNameTable {
  PyObject* id_of_object = PyDict_New();
  std::unordered_map<int32_t, std::pair<AxisName, PyObject*>> by_id;
};

AxisNameTable& table() {
  static auto* created = new AxisNameTable;
  return *created;
}

// Created at load, under the GIL; later, Python code run by PyDict_New could release the GIL during creation.
[[maybe_unused]] const AxisNameTable& g_names_made_at_load = table();

}  // namespace

AxisName axis_name_from_python(py::handle object, std::string_view operation) {
  AxisNameTable& known = table();
  if (PyObject* id = sleeping_at_exit([&] { return PyDict_GetItemWithError(known.id_of_object, object.ptr()); })) {
    return known.by_id.at(static_cast<int32_t>(PyLong_AsLong(id))).first;
  }
  if (PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0)
      throw py::error_already_set();  // an error of the object's own code
    PyErr_Clear();
    throw_error<TypeMismatch>(
        "{}: an axis name of type {} is not hashable; expected a hashable, got {}; use a str such as 'data'", operation,
        Py_TYPE(object.ptr())->tp_name, safe_repr(object));
  }
  if (object.is_none()) {
    throw_error("{}: None is not an axis name; expected another hashable; use a str such as 'data'", operation);
  }
  // A lone surrogate has no UTF-8: a str with one is treated as any other hashable.
  const bool is_text = PyUnicode_Check(object.ptr()) && PyUnicode_AsUTF8(object.ptr()) != nullptr;
  PyErr_Clear();
  const AxisName name = is_text ? AxisName(object.cast<std::string>()) : AxisName::foreign(safe_repr(object));
  known.by_id[name.id()] = {name, py::object(py::reinterpret_borrow<py::object>(object)).release().ptr()};
  const py::int_ id(name.id());
  check(sleeping_at_exit([&] { return PyDict_SetItem(known.id_of_object, object.ptr(), id.ptr()); }));
  return name;
}

py::object axis_name_to_python(AxisName name) {
  const auto found = table().by_id.find(name.id());
  if (found != table().by_id.end()) return py::reinterpret_borrow<py::object>(found->second.second);
  return py::str(name.text());  // a name created in C++
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
        Py_TYPE(object.ptr())->tp_name, safe_repr(object));
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
