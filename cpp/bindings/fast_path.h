// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "gil.h"
#include "pybind.h"

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The common form of a call, tried before pybind11, which takes 150 ns and more to parse arguments. Receives the
/// object (the class, for a call of a class) and positional arguments. Returns a new reference; or null, with no error
/// set, for arguments that it does not handle: then pybind11's slow path is called, so errors and keywords are
/// implemented once. The slow path is called for C++ exceptions too; a Python error that it has set is final.
using FastPath = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
using FastGetter = PyObject* (*)(PyObject* self);

/// The C++ object of an instance of T or of a class whose first base is T; null if __init__ has not run.
template <class T>
T* value_in(PyObject* object) {
  auto* instance = reinterpret_cast<py::detail::instance*>(object);
  if (instance->simple_layout) return static_cast<T*>(instance->simple_value_holder[0]);
  return py::handle(object).cast<T*>();  // a Python class with several bases
}

/// A copy of the text that is never freed, as CPython keeps pointers to it.
inline const char* permanent_text(const std::string& text) { return (new std::string(text))->c_str(); }

/// Whether the fast path has finished the call, with a result or a Python error: the user's code and signal handlers do
/// not run twice. Errors of the core are left to the slow path, which finds them again, except for Interrupted, for
/// which the exception of a signal handler is set.
template <class Call>
bool is_done(PyObject** result, Call&& call) noexcept {
  *result = nullptr;
  try {
    *result = sleeping_at_exit(call);
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception&) {  // the slow path says what it is
  }
  return *result != nullptr || PyErr_Occurred() != nullptr;
}

template <FastPath fast_path>
struct FastMethod {
  inline static PyObject* slow_path = nullptr;
  inline static PyMethodDef definition = {};

  static PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) noexcept {
    if (names == nullptr) {
      PyObject* result = nullptr;
      if (is_done(&result, [&] { return fast_path(self, arguments, count); })) return result;
    }
    const Py_ssize_t all = count + (names == nullptr ? 0 : PyTuple_GET_SIZE(names));
    std::vector<PyObject*> with_self;
    try {
      with_self.resize(static_cast<size_t>(all) + 1);
    } catch (const std::bad_alloc&) {
      return PyErr_NoMemory();
    }
    with_self[0] = self;
    std::copy(arguments, arguments + all, with_self.begin() + 1);
    return sleeping_at_exit(
        [&] { return PyObject_Vectorcall(slow_path, with_self.data(), static_cast<size_t>(count) + 1, names); });
  }
};

/// Adds a fast path to a method bound by pybind11. Each method needs its own.
template <FastPath fast_path>
void add_fast_method(py::object cls, const char* name) {
  using Method = FastMethod<fast_path>;
  const py::object slow_path = cls.attr(name);
  Method::definition = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&Method::call)),
                        METH_FASTCALL | METH_KEYWORDS, permanent_text(slow_path.attr("__doc__").cast<std::string>())};
  Method::slow_path = py::object(slow_path).release().ptr();
  PyObject* method = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(cls.ptr()), &Method::definition);
  if (method == nullptr) throw py::error_already_set();
  cls.attr(name) = py::reinterpret_steal<py::object>(method);
}

template <FastGetter getter>
struct FastProperty {
  inline static PyObject* slow_path = nullptr;
  inline static PyMethodDef definition = {};

  static PyObject* call(PyObject*, PyObject* self) noexcept {
    if (Py_TYPE(self) == type || PyType_IsSubtype(Py_TYPE(self), type)) {
      PyObject* result = nullptr;
      if (is_done(&result, [&] { return getter(self); })) return result;
    }
    return sleeping_at_exit([&] { return PyObject_CallOneArg(slow_path, self); });
  }
  inline static PyTypeObject* type = nullptr;
};

/// Adds a fast path to a read-only property.
template <FastGetter getter>
void add_fast_property(py::object cls, const char* name) {
  using Property = FastProperty<getter>;
  const py::object property = cls.attr(name);
  const py::object slow_path = property.attr("fget");
  Property::definition = {name, &Property::call, METH_O, permanent_text(slow_path.attr("__doc__").cast<std::string>())};
  Property::slow_path = py::object(slow_path).release().ptr();
  Property::type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  const auto function = py::reinterpret_steal<py::object>(PyCFunction_New(&Property::definition, nullptr));
  cls.attr(name) =
      py::module_::import("builtins").attr("property")(function, py::none(), py::none(), property.attr("__doc__"));
}

/// Creates an object of the class by pybind11's slow path.
PyObject* construct_slowly(PyObject* cls, PyObject* const* arguments, Py_ssize_t count, PyObject* names);

/// The metaclass of classes whose calls have a fast path, or explain arguments that they do not take.
py::handle fast_path_metaclass();

template <FastPath fast_path>
struct FastClass {
  static PyObject* call(PyObject* cls, PyObject* const* arguments, size_t flags, PyObject* names) noexcept {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (names == nullptr) {
      PyObject* result = nullptr;
      if (is_done(&result, [&] { return fast_path(cls, arguments, count); })) return result;
    }
    return sleeping_at_exit([&] { return construct_slowly(cls, arguments, count, names); });
  }
};

/// Adds a fast path to calls of a class whose metaclass is fast_path_metaclass(). Derived classes use the slow path.
template <FastPath fast_path>
void add_fast_class(py::object cls) {
  reinterpret_cast<PyTypeObject*>(cls.ptr())->tp_vectorcall = &FastClass<fast_path>::call;
}

inline PyObject* no_fast_path(PyObject*, PyObject* const*, Py_ssize_t) { return nullptr; }

/// Explains arguments that the class does not take; for classes whose calls need no fast path.
inline void add_explained_class(py::object cls) { add_fast_class<&no_fast_path>(std::move(cls)); }

}  // namespace artifex_devices::bindings
