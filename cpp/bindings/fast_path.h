// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace artifex_devices::bindings {

namespace py = pybind11;

/// The everyday form of a call, beside pybind11's general way, which takes 150 ns and more to sort arguments out.
/// Gets the object (for a class the class) and positional arguments. Gives a new reference; or null, with no error set,
/// for whatever it does not know: that goes the general way, so errors and keywords are written once. So does what it
/// throws; a Python error that it has set stands.
using FastPath = PyObject* (*)(PyObject* self, PyObject* const* arguments, Py_ssize_t count);
using FastGetter = PyObject* (*)(PyObject* self);

/// The C++ object of an instance of T or of a class derived from it first; null where __init__ has not run.
template <class T>
T* value_in(PyObject* object) {
  auto* instance = reinterpret_cast<py::detail::instance*>(object);
  if (instance->simple_layout) return static_cast<T*>(instance->simple_value_holder[0]);
  return py::handle(object).cast<T*>();  // a Python class with several bases
}

/// Its text for good, as CPython keeps pointers to it.
inline const char* permanent_text(const std::string& text) { return (new std::string(text))->c_str(); }

/// Whether the short cut was it: there is a result, or an error.
template <class Call>
bool is_done(PyObject** result, Call&& call) noexcept {
  try {
    *result = call();
    return *result != nullptr || PyErr_Occurred() != nullptr;
  } catch (...) {
    PyErr_Clear();
    return false;
  }
}

/// Notes a function that stands behind a short cut, called Class.name: it is in no class any more.
void register_slow_path(py::handle cls, const char* name, py::handle general);

/// All that were noted: name and function.
const std::vector<std::pair<std::string, PyObject*>>& slow_paths();

template <FastPath fast_path>
struct FastMethod {
  inline static PyObject* general = nullptr;
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
    return PyObject_Vectorcall(general, with_self.data(), static_cast<size_t>(count) + 1, names);
  }
};

/// Puts a short cut before a method that pybind11 has bound; each needs a short cut of its own.
template <FastPath fast_path>
void add_fast_method(py::object cls, const char* name) {
  using Method = FastMethod<fast_path>;
  const py::object general = cls.attr(name);
  Method::definition = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&Method::call)),
                        METH_FASTCALL | METH_KEYWORDS, permanent_text(general.attr("__doc__").cast<std::string>())};
  Method::general = py::object(general).release().ptr();
  register_slow_path(cls, name, general);
  PyObject* method = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(cls.ptr()), &Method::definition);
  if (method == nullptr) throw py::error_already_set();
  cls.attr(name) = py::reinterpret_steal<py::object>(method);
}

template <FastGetter getter>
struct FastProperty {
  inline static PyObject* general = nullptr;
  inline static PyMethodDef definition = {};

  static PyObject* call(PyObject*, PyObject* self) noexcept {
    if (Py_TYPE(self) == type || PyType_IsSubtype(Py_TYPE(self), type)) {
      PyObject* result = nullptr;
      if (is_done(&result, [&] { return getter(self); })) return result;
    }
    return PyObject_CallOneArg(general, self);
  }
  inline static PyTypeObject* type = nullptr;
};

/// The same for a read-only property.
template <FastGetter getter>
void add_fast_property(py::object cls, const char* name) {
  using Property = FastProperty<getter>;
  const py::object property = cls.attr(name);
  const py::object general = property.attr("fget");
  Property::definition = {name, &Property::call, METH_O, permanent_text(general.attr("__doc__").cast<std::string>())};
  Property::general = py::object(general).release().ptr();
  register_slow_path(cls, name, general);
  Property::type = reinterpret_cast<PyTypeObject*>(cls.ptr());
  const auto function = py::reinterpret_steal<py::object>(PyCFunction_New(&Property::definition, nullptr));
  cls.attr(name) =
      py::module_::import("builtins").attr("property")(function, py::none(), py::none(), property.attr("__doc__"));
}

/// Makes an object of the class the general way.
PyObject* construct_slowly(PyObject* cls, PyObject* const* arguments, Py_ssize_t count, PyObject* names);

/// The metaclass of classes whose calls have a short cut.
py::handle fast_path_metaclass();

template <FastPath fast_path>
struct FastClass {
  static PyObject* call(PyObject* cls, PyObject* const* arguments, size_t flags, PyObject* names) noexcept {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (names == nullptr) {
      PyObject* result = nullptr;
      if (is_done(&result, [&] { return fast_path(cls, arguments, count); })) return result;
    }
    return construct_slowly(cls, arguments, count, names);
  }
};

/// The same for calls of a class itself, whose metaclass is fast_path_metaclass(); classes derived from it go the
/// general way.
template <FastPath fast_path>
void add_fast_class(py::object cls) {
  reinterpret_cast<PyTypeObject*>(cls.ptr())->tp_vectorcall = &FastClass<fast_path>::call;
}

}  // namespace artifex_devices::bindings
