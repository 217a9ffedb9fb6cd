// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <initializer_list>

#include "artifex_devices/base/file.h"
#include "artifex_devices/transfer/dlpack.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

// Exception classes live as long as the interpreter.
PyObject* indivisible = nullptr;
PyObject* duplicate_spec = nullptr;
PyObject* sharding_type_error = nullptr;
PyObject* jax_runtime_error = nullptr;
PyObject* resource_exhausted = nullptr;
PyObject* transfer_guard_error = nullptr;

PyObject* make_class(py::module_& module, const char* name, const char* doc, std::initializer_list<PyObject*> bases) {
  py::tuple base_tuple(bases.size());
  size_t i = 0;
  for (PyObject* base : bases) base_tuple[i++] = py::reinterpret_borrow<py::object>(base);
  const std::string full_name = std::string(python_modules::kErrors) + "." + name;
  PyObject* result = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, base_tuple.ptr(), nullptr);
  if (result == nullptr) throw py::error_already_set();
  module.attr(name) = py::reinterpret_borrow<py::object>(result);
  return result;
}

// The Python class of a core error; the most derived classes come first.
PyObject* class_of(const Error& error) {
  if (dynamic_cast<const IndivisibleError*>(&error)) return indivisible;
  if (dynamic_cast<const DuplicateSpecError*>(&error)) return duplicate_spec;
  if (dynamic_cast<const ShardingTypeError*>(&error)) return sharding_type_error;
  if (dynamic_cast<const InvalidArgument*>(&error)) return PyExc_ValueError;
  if (dynamic_cast<const TypeMismatch*>(&error)) return PyExc_TypeError;
  if (dynamic_cast<const IndexOutOfRange*>(&error)) return PyExc_IndexError;
  if (dynamic_cast<const FileNotFound*>(&error)) return PyExc_FileNotFoundError;
  if (dynamic_cast<const OutOfMemory*>(&error)) return resource_exhausted;
  if (dynamic_cast<const TransferGuardError*>(&error)) return transfer_guard_error;
  if (dynamic_cast<const NotImplemented*>(&error)) return PyExc_NotImplementedError;
  if (dynamic_cast<const AssertionFailed*>(&error)) return PyExc_AssertionError;
  if (dynamic_cast<const OverflowError*>(&error)) return PyExc_OverflowError;
  if (dynamic_cast<const UnsupportedBuffer*>(&error)) return PyExc_BufferError;
  return PyExc_RuntimeError;
}

void set_python_error(const Error& error, const std::string& prefix) {
  if (dynamic_cast<const Interrupted*>(&error)) {
    // The signal handler's exception is set already, whatever its class.
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    return;
  }
  if (const auto* failure = dynamic_cast<const FileError*>(&error)) {
    const py::object value = py::reinterpret_steal<py::object>(
        PyObject_CallFunction(PyExc_OSError, "is", failure->code(), (prefix + error.what()).c_str()));
    if (value) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
    return;
  }
  PyErr_SetString(class_of(error), (prefix + error.what()).c_str());
}

}  // namespace

std::string text_of_error(const std::exception& error, PyObject* signal) {
  const auto name_of = [](PyObject* type) { return py::handle(type).attr("__name__").cast<std::string>(); };
  if (const auto* raised = dynamic_cast<const py::error_already_set*>(&error)) {
    return py::module_::import(python_modules::kFailureNotice).attr("error_text")(raised->value()).cast<std::string>();
  }
  if (dynamic_cast<const Interrupted*>(&error)) return name_of(signal != nullptr ? signal : PyExc_KeyboardInterrupt);
  if (const auto* core = dynamic_cast<const Error*>(&error)) return name_of(class_of(*core)) + ": " + error.what();
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return name_of(is_memory ? PyExc_MemoryError : PyExc_RuntimeError) + ": " + error.what();
}

void rethrow_with_context(const std::string& prefix) {
  try {
    throw;
  } catch (const Error& error) {
    set_python_error(error, std::string_view(error.what()).starts_with(prefix) ? "" : prefix);
    throw py::error_already_set();
  }
}

void set_error_of_exception() noexcept {
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const Error& error) {
    set_python_error(error, "");
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void bind_errors(py::module_& module) {
  indivisible =
      make_class(module, "IndivisibleError", "A dimension is not divisible by its mesh axes. A ValueError, as in JAX.",
                 {PyExc_ValueError});
  duplicate_spec = make_class(module, "DuplicateSpecError",
                              "A mesh axis is used twice in one PartitionSpec. A ValueError here, unlike in JAX.",
                              {PyExc_ValueError});
  sharding_type_error =
      make_class(module, "ShardingTypeError",
                 "Operands are sharded differently over Explicit mesh axes. A ValueError here, unlike in JAX.",
                 {PyExc_ValueError});
  jax_runtime_error =
      make_class(module, "JaxRuntimeError",
                 "An error of the runtime, with the name that it has in JAX. A RuntimeError.", {PyExc_RuntimeError});
  transfer_guard_error =
      make_class(module, "TransferGuardError", "A transfer guard refused a transfer. A JaxRuntimeError, as in JAX.",
                 {jax_runtime_error});
  resource_exhausted = make_class(module, "ResourceExhaustedError",
                                  "The memory of the machine or a device's limit is exhausted. Both a MemoryError and, "
                                  "as in JAX, a JaxRuntimeError; its text begins with RESOURCE_EXHAUSTED.",
                                  {PyExc_MemoryError, jax_runtime_error});
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      set_python_error(error, "");
    }
  });
}

}  // namespace artifex_devices::bindings
