// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <exception>

#include "errors.h"
#include "gil.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

// Primitives of classes and functions that CPython calls without pybind11, which is slower and keeps a stack of its
// frames for each thread that a switch between greenlets would corrupt.

/// Runs `call` and turns its exceptions into Python errors.
template <typename Call>
inline PyObject* translated(Call call) noexcept {
  try {
    return sleeping_at_exit(call);
  } catch (const std::exception&) {
    set_error_of_exception();
    return nullptr;
  }
}

inline py::object checked(PyObject* result) {
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// Python code runs in sleeping_at_exit, in the innermost frame of C++: a thread that CPython ends there sleeps before
// anything is unwound.

/// Calls a Python function.
template <class... Arguments>
py::object call_python(py::handle function, const Arguments&... arguments) {
  return checked(
      sleeping_at_exit([&] { return PyObject_CallFunctionObjArgs(function.ptr(), arguments.ptr()..., nullptr); }));
}

/// Calls a Python function of a module, which is imported first.
template <class... Arguments>
py::object call_python(const char* module, const char* function, const Arguments&... arguments) {
  const py::object imported = checked(sleeping_at_exit([&] { return PyImport_ImportModule(module); }));
  return call_python(checked(PyObject_GetAttrString(imported.ptr(), function)), arguments...);
}

/// A new reference to the value of a key; null if there is none, or with the error that the key's code raised.
inline PyObject* dict_item(PyObject* dict, PyObject* key) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* value = nullptr;
  PyDict_GetItemRef(dict, key, &value);
  return value;
#else
  return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

/// A new reference to an item of a list or tuple; null, with no error, beyond its end. Without the GIL another thread
/// may change the list meanwhile.
inline PyObject* sequence_item(PyObject* sequence, Py_ssize_t i) {
#ifdef Py_GIL_DISABLED
  if (PyList_CheckExact(sequence)) {
    PyObject* const item = PyList_GetItemRef(sequence, i);
    if (item == nullptr) PyErr_Clear();
    return item;
  }
#endif
  return i < PySequence_Fast_GET_SIZE(sequence) ? Py_NewRef(PySequence_Fast_GET_ITEM(sequence, i)) : nullptr;
}

inline void check(int status) {
  if (status < 0) throw py::error_already_set();
}

/// Takes the current Python error: the exception, with its traceback.
inline py::object take_error() {
  PyObject* type = nullptr;
  PyObject* error = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace != nullptr) PyException_SetTraceback(error, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return py::reinterpret_steal<py::object>(error);
}

/// Makes an exception the current Python error again.
inline void restore_error(py::object error) {
  PyObject* const value = error.release().ptr();
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), value, PyException_GetTraceback(value));
}

inline PyObject* new_reference(PyObject* object) { return Py_NewRef(object); }

inline PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

inline PyTypeObject* make_class(const py::module_& module, PyType_Spec& spec) {
  const py::object type_object = checked(PyType_FromSpec(&spec));
  module.attr(std::strrchr(spec.name, '.') + 1) = type_object;
  return reinterpret_cast<PyTypeObject*>(new_reference(type_object.ptr()));
}

template <typename Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace artifex_devices::bindings
