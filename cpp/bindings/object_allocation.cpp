// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "cpython_calls.h"
#include "pybind11_patches.h"

namespace artifex_devices::bindings {
namespace {

// tp_alloc of our classes: called by pybind11's casts, which are C++, and by `make` below.
PyObject* allocate(PyTypeObject* type, Py_ssize_t items) {
  PyObject* const made = PyType_GenericAlloc(type, items);
  if (made != nullptr) return made;
  PyErr_Clear();
  throw std::bad_alloc();
}

// tp_new of our classes and of classes of Python derived from them, whose tp_alloc is Python's own: no exception may
// pass through Python, which calls it.
PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  return translated([&]() -> PyObject* {
    py::detail::all_type_info(type);  // is made at the first object of a class, and may ask for memory
    PyObject* const made = PyType_GenericAlloc(type, 0);
    if (made != nullptr) reinterpret_cast<py::detail::instance*>(made)->allocate_layout();
    return made;
  });
}

}  // namespace

void check_allocations(const py::module_& module) {
  PyTypeObject* const metaclass = py::detail::get_internals().default_metaclass;
  auto* const base = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  const py::object general = py::reinterpret_borrow<py::object>(PyDict_GetItemString(base->tp_dict, "__new__"));
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!PyObject_TypeCheck(value.ptr(), metaclass)) continue;
    auto* type = reinterpret_cast<PyTypeObject*>(value.ptr());
    auto* info = py::detail::get_type_info(type);
    if (info == nullptr || info->type != type) continue;
    type->tp_alloc = &allocate;
    if (type->tp_new != base->tp_new) continue;  // it has a __new__ of ours, which makes objects by casts
    type->tp_new = &make;
    // Class.__new__ must be of the class whose tp_new it calls: the same built-in function as that of the base, bound
    // to this class.
    auto* method = reinterpret_cast<PyCFunctionObject*>(general.ptr())->m_ml;
    const py::object own = checked(PyCFunction_New(method, value.ptr()));
    check(PyDict_SetItemString(type->tp_dict, "__new__", own.ptr()));
    PyType_Modified(type);
  }
}

}  // namespace artifex_devices::bindings
