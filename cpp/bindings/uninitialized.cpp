// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <string_view>

#include "bindings.h"

namespace artifex_devices::bindings {
namespace {

constexpr const char* kUninitialized =
    "artifex_devices: an object has no value, because its __init__ has not run; expected an object that its class or a "
    "function of this package returned; call the class, for example NamedSharding(mesh, spec), not "
    "NamedSharding.__new__(NamedSharding)";

/// pybind11 calls the class's operator new only where a value is used that is missing; constructors bring their own
/// memory.
void* raise(size_t) {
  PyErr_SetString(PyExc_TypeError, kUninitialized);
  throw py::error_already_set();
}

/// Errors of pybind11's casts are TypeErrors. A cast to shared_ptr does not call operator new; pybind11 throws its own
/// error about holders.
void translate(std::exception_ptr pointer) {
  try {
    std::rethrow_exception(pointer);
  } catch (const py::cast_error& error) {
    const std::string_view text = error.what();
    const bool is_uninitialized = text.starts_with("Unable to cast from non-held to held instance");
    PyErr_SetString(PyExc_TypeError, is_uninitialized ? kUninitialized : error.what());
  }
}

}  // namespace

void reject_uninitialized(const py::module_& module) {
  PyTypeObject* const metaclass = py::detail::get_internals().default_metaclass;
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!PyObject_TypeCheck(value.ptr(), metaclass)) continue;
    auto* info = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(value.ptr()));
    if (info != nullptr) info->operator_new = &raise;
  }
  py::register_local_exception_translator(&translate);
}

}  // namespace artifex_devices::bindings
