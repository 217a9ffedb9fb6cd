// SPDX-License-Identifier: Apache-2.0
#include "fast_path.h"

#include <cstddef>

#include "cpython_calls.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

/// Replaces the current error, where it is pybind11's list of overloads, by a sentence about these arguments.
void explain_arguments(PyObject* cls, const py::tuple& positional, py::handle named) {
  const py::object error = take_error();
  try {
    restore_error(call_python(python_modules::kArgumentHints, "explained_arguments", py::handle(cls), error, positional,
                              named ? named : py::none()));
  } catch (py::error_already_set& raised) {
    raised.restore();
  }
}

}  // namespace

PyObject* construct_slowly(PyObject* cls, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  const auto positional = py::reinterpret_steal<py::tuple>(PyTuple_New(count));
  if (!positional) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional.ptr(), i, Py_NewRef(arguments[i]));
  py::object named;
  if (names != nullptr) {
    named = py::reinterpret_steal<py::object>(PyDict_New());
    if (!named) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      if (PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(names, i), arguments[count + i]) < 0) return nullptr;
    }
  }
  PyObject* object = Py_TYPE(cls)->tp_call(cls, positional.ptr(), named.ptr());
  if (object == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) explain_arguments(cls, positional, named);
  return object;
}

py::handle fast_path_metaclass() {
  static PyObject* metaclass = nullptr;
  if (metaclass != nullptr) return metaclass;
  const py::handle general = reinterpret_cast<PyObject*>(py::detail::get_internals().default_metaclass);
  py::dict contents;
  contents["__module__"] = python_modules::kCore;
  metaclass = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(&PyType_Type))(
                  "fast_path_type", py::make_tuple(general), contents)
                  .release()
                  .ptr();
  // Classes without a tp_vectorcall are called by tp_call, as before.
  auto* type = reinterpret_cast<PyTypeObject*>(metaclass);
  type->tp_vectorcall_offset = offsetof(PyTypeObject, tp_vectorcall);
  type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  return metaclass;
}

}  // namespace artifex_devices::bindings
