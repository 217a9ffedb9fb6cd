// SPDX-License-Identifier: Apache-2.0
// Comparison of containers by the identity of their elements, for artifex_devices.testing.
#include <pybind11/critical_section.h>

#include "artifex_devices/base/throw_error.h"
#include "bindings.h"
#include "cpython_calls.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

// Whether a list, dict or set has exactly these elements in this order: a dict its keys, then its values. Calls no code
// of the user.
bool has_elements(PyObject* container, PyObject* elements) {
  const py::scoped_critical_section lock(container);
  const Py_ssize_t count = PyTuple_GET_SIZE(elements);
  if (PyDict_CheckExact(container)) {
    const Py_ssize_t size = PyDict_GET_SIZE(container);
    if (count != 2 * size) return false;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; PyDict_Next(container, &position, &key, &value) != 0; ++i) {
      if (key != PyTuple_GET_ITEM(elements, i) || value != PyTuple_GET_ITEM(elements, size + i)) return false;
    }
    return true;
  }
  if (PyList_CheckExact(container)) {
    if (count != PyList_GET_SIZE(container)) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (PyList_GET_ITEM(container, i) != PyTuple_GET_ITEM(elements, i)) return false;
    }
    return true;
  }
  if (!PyAnySet_CheckExact(container)) throw_error("have_elements: expected lists, dicts and sets");
  if (count != PySet_GET_SIZE(container)) return false;
  const py::object iterator = checked(PyObject_GetIter(container));
  for (Py_ssize_t i = 0; i < count; ++i) {
    const py::object element = checked(PyIter_Next(iterator.ptr()));
    if (element.ptr() != PyTuple_GET_ITEM(elements, i)) return false;
  }
  return true;
}

}  // namespace

void bind_object_identity(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "have_elements",
      [](const py::list& containers, const py::list& elements) {
        if (containers.size() != elements.size()) throw_error("have_elements: expected elements for each container");
        for (size_t i = 0; i < containers.size(); ++i) {
          if (!has_elements(containers[i].ptr(), py::tuple(elements[i]).ptr())) return false;
        }
        return true;
      },
      py::arg("containers"), py::arg("elements"),
      "Returns whether each list, dict or set has exactly the objects of its tuple, in their order; the elements of a "
      "dict are its keys, then its values.");
}

}  // namespace artifex_devices::bindings
