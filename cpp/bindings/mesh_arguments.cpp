// SPDX-License-Identifier: Apache-2.0
#include "mesh_arguments.h"

#include <mutex>
#include <unordered_map>

#include "artifex_devices/base/throw_error.h"
#include "cpython_calls.h"
#include "gil_mutex.h"
#include "python_arguments.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

// Maps in both directions. Holds Python objects; never destroyed. A name is in `by_id` before its object is in the
// dict, from which nothing is removed.
class AxisNameTable {
 public:
  PyObject* id_of_object = nullptr;

  AxisName name_of(PyObject* id) const {
    const std::lock_guard lock(mutex_);
    return by_id_.at(static_cast<int32_t>(PyLong_AsLong(id))).first;
  }

  /// Null for a name created in C++.
  py::object object_of(AxisName name) const {
    const std::lock_guard lock(mutex_);
    const auto found = by_id_.find(name.id());
    return found == by_id_.end() ? py::object() : found->second.second;
  }

  /// Returns whether the name is new.
  bool add(AxisName name, const py::object& object) {
    const std::lock_guard lock(mutex_);
    return by_id_.try_emplace(name.id(), name, object).second;
  }

  void remove(AxisName name) {
    decltype(by_id_)::node_type removed;
    const std::lock_guard lock(mutex_);  // until `removed` is destroyed, which may run Python code
    removed = by_id_.extract(name.id());
  }

 private:
  std::unordered_map<int32_t, std::pair<AxisName, py::object>> by_id_;
  mutable GilMutex mutex_;
};

AxisNameTable& table() {
  static auto* created = new AxisNameTable;
  return *created;
}

}  // namespace

void create_axis_name_table() { table().id_of_object = py::dict().release().ptr(); }

AxisName axis_name_from_python(py::handle object, std::string_view operation) {
  AxisNameTable& known = table();
  const auto found =
      py::reinterpret_steal<py::object>(sleeping_at_exit([&] { return dict_item(known.id_of_object, object.ptr()); }));
  if (found) return known.name_of(found.ptr());
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
  if (PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_UnicodeError) == 0) throw py::error_already_set();
    PyErr_Clear();
  }
  const AxisName name = is_text ? AxisName(object.cast<std::string>()) : AxisName::foreign(safe_repr(object));
  const bool is_new = known.add(name, py::reinterpret_borrow<py::object>(object));
  // Code of the object may have let another thread add an equal one since the look-up: then that one counts.
  const py::int_ added(name.id());
  PyObject* const id =
      sleeping_at_exit([&] { return PyDict_SetDefault(known.id_of_object, object.ptr(), added.ptr()); });
  if (is_new && (id == nullptr || known.name_of(id) != name)) known.remove(name);
  if (id == nullptr) throw py::error_already_set();
  return known.name_of(id);
}

py::object axis_name_to_python(AxisName name) {
  py::object object = table().object_of(name);
  return object ? object : py::str(name.text());
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
  for_each_dimension(object, operation, "axis_names",
                     [&](py::handle item) { names.push_back(axis_name_from_python(item, operation)); });
  return names;
}

py::tuple axis_names_to_python(const std::vector<AxisName>& names) {
  py::tuple result(names.size());
  for (size_t i = 0; i < names.size(); ++i) result[i] = axis_name_to_python(names[i]);
  return result;
}

}  // namespace artifex_devices::bindings
