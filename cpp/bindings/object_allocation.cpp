// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "cpython_calls.h"
#include "pybind11_patches.h"

namespace artifex_devices::bindings {
namespace {

// tp_alloc of the bound classes, called by pybind11's casts and by `make` below.
PyObject* allocate(PyTypeObject* type, Py_ssize_t items) {
  PyObject* const object = PyType_GenericAlloc(type, items);
  if (object != nullptr) return object;
  PyErr_Clear();
  throw std::bad_alloc();
}

// tp_new of the bound classes and of Python classes derived from them, whose tp_alloc is Python's: no C++ exception may
// pass through Python, which calls it.
PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  return translated([&]() -> PyObject* {
    py::detail::all_type_info(type);  // created for the first object of a class; may allocate
    PyObject* const object = PyType_GenericAlloc(type, 0);
    if (object != nullptr) reinterpret_cast<py::detail::instance*>(object)->allocate_layout();
    return object;
  });
}

}  // namespace

void check_allocations(const py::module_& module) {
  PyTypeObject* const metaclass = py::detail::get_internals().default_metaclass;
  auto* const base = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  const py::object base_new = py::reinterpret_borrow<py::object>(PyDict_GetItemString(base->tp_dict, "__new__"));
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!PyObject_TypeCheck(value.ptr(), metaclass)) continue;
    auto* type = reinterpret_cast<PyTypeObject*>(value.ptr());
    auto* info = py::detail::get_type_info(type);
    if (info == nullptr || info->type != type) continue;
    type->tp_alloc = &allocate;
    if (type->tp_new != base->tp_new) continue;  // it has its class_new __new__, which creates objects by casts
    type->tp_new = &make;
    // Class.__new__ must belong to the class whose tp_new it calls: the built-in function of the base, bound to this
    // class.
    auto* method = reinterpret_cast<PyCFunctionObject*>(base_new.ptr())->m_ml;
    const py::object class_new = checked(PyCFunction_New(method, value.ptr()));
    check(PyDict_SetItemString(type->tp_dict, "__new__", class_new.ptr()));
    PyType_Modified(type);
  }
}

}  // namespace artifex_devices::bindings
