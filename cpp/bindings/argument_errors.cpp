// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argument_error_text.h"
#include "fast_path.h"
#include "pybind11_patches.h"
#include "text_signature.h"

namespace artifex_devices::bindings {
namespace {

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, size_t, PyObject*);

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

// pybind11's one function behind every bound function, and the names of these; written at import only.
FastCall bound_call = nullptr;
struct Bound {
  std::string name;
  bool is_method = false;
};
std::unordered_map<PyObject*, Bound>& names() {
  static auto* const names_by_record = new std::unordered_map<PyObject*, Bound>();  // lives as long as the interpreter
  return *names_by_record;
}

// How to get objects of classes that have no constructor.
constexpr std::pair<std::string_view, const char*> kSources[] = {
    {"Array", "device_put(x)"},
    {"Client", "devices()[0].client or xla_client.make_cpu_client()"},
    {"Cluster", "cluster.this_machine(), cluster.tpu(...) or cluster.from_toml(path)"},
    {"Device", "devices()"},
    {"DeviceAssignment", "DeviceAssignment.create(array)"},
    {"DeviceTopology", "xla_client.get_topology_for_devices(devices)"},
    {"Machine", "Machine.live(), Machine.from_xml(path) or Machine.from_synthetic(description)"},
    {"Memory", "Device.memory(kind)"},
    {"Shard", "Array.addressable_shards"},
    {"Sharding", "NamedSharding(mesh, spec) or SingleDeviceSharding(device)"},
};

std::string_view short_name(PyTypeObject* type) {
  const std::string_view full = type->tp_name;
  return full.substr(full.rfind('.') + 1);
}

int reject_construction(PyObject* self, PyObject* /*arguments*/, PyObject* /*named*/) {
  const char* source = "a function of this package that returns one";
  std::string_view name = short_name(Py_TYPE(self));
  for (PyTypeObject* type = Py_TYPE(self); type != nullptr; type = type->tp_base) {
    for (const auto& [known, how] : kSources) {
      if (known != short_name(type)) continue;
      PyErr_SetString(PyExc_TypeError,
                      fmt::format("{}: the class has no constructor; expected no call; use {}", name, how).c_str());
      return -1;
    }
  }
  PyErr_SetString(PyExc_TypeError,
                  fmt::format("{}: the class has no constructor; expected no call; use {}", name, source).c_str());
  return -1;
}

// Array.delete(None): pybind11 would pass a null pointer to a method that takes its object by pointer.
bool has_no_object(PyObject* record, PyObject* const* arguments, Py_ssize_t count) {
  if (count == 0 || arguments[0] != Py_None) return false;
  const auto found = names().find(record);
  if (found == names().end() || !found->second.is_method) return false;
  const std::string& name = found->second.name;
  PyErr_SetString(PyExc_TypeError, fmt::format("{}: self is None; expected an object of class {}; call it on one", name,
                                               name.substr(0, name.find('.')))
                                       .c_str());
  return true;
}

PyObject* call_bound(PyObject* record, PyObject* const* arguments, size_t count, PyObject* keywords) {
  if (has_no_object(record, arguments, PyVectorcall_NARGS(count))) return nullptr;
  PyObject* const result = bound_call(record, arguments, count, keywords);
  if (result != nullptr) return result;
  PyObject* const kind = PyErr_Occurred();
  if (kind != PyExc_TypeError && kind != PyExc_RuntimeError) return nullptr;
  try {
    py::error_already_set error;
    const py::object text = error.value() ? error.value().attr("args") : py::tuple();
    if (!PyTuple_CheckExact(text.ptr()) || PyTuple_GET_SIZE(text.ptr()) != 1 ||
        !PyUnicode_CheckExact(PyTuple_GET_ITEM(text.ptr(), 0))) {
      error.restore();
      return nullptr;
    }
    const auto found = names().find(record);
    const std::string name = found == names().end() ? "" : found->second.name;
    const auto original = py::str(PyTuple_GET_ITEM(text.ptr(), 0)).cast<std::string>();
    const CallArguments call{arguments, PyVectorcall_NARGS(count), keywords};
    const std::string message =
        kind == PyExc_TypeError ? argument_error_text(name, original, call) : value_error_text(name, original);
    if (message.empty()) {
      error.restore();
    } else {
      PyErr_SetString(PyExc_TypeError, message.c_str());
    }
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  }
  return nullptr;
}

// A method, static method or function of pybind11's, if it is one.
PyObject* plain_function(PyObject* object, py::object& keep) {
  if (PyInstanceMethod_Check(object)) object = PyInstanceMethod_GET_FUNCTION(object);
  if (Py_TYPE(object) == &PyStaticMethod_Type) {
    keep = py::handle(object).attr("__func__");
    object = keep.ptr();
  }
  return PyCFunction_CheckExact(object) ? object : nullptr;
}

// pybind11 frees the docstring with free().
void add_text_signature(PyMethodDef* definition) {
  if (definition->ml_doc == nullptr) return;
  char* const doc = strdup(with_text_signature(definition->ml_name, definition->ml_doc, "self").c_str());
  if (doc == nullptr) throw std::bad_alloc();
  std::free(const_cast<char*>(std::exchange(definition->ml_doc, doc)));
}

void explain(PyObject* object, const std::string& name, bool is_method) {
  py::object keep;
  PyObject* const function = plain_function(object, keep);
  if (function == nullptr) return;
  PyMethodDef* const definition = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  if (definition->ml_flags != kFast) return;  // pybind11 before 3.1: its own text stays
  const auto call = reinterpret_cast<FastCall>(reinterpret_cast<void (*)()>(definition->ml_meth));
  if (call != &call_bound) {
    if (bound_call == nullptr) bound_call = call;
    if (call != bound_call) return;
    definition->ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call_bound));
  }
  const bool is_new = names().emplace(PyCFunction_GET_SELF(function), Bound{name, is_method}).second;
  if (is_new) add_text_signature(definition);
}

void explain_class(PyTypeObject* type, const std::string& name) {
  if (type->tp_init == py::detail::pybind11_object_init) type->tp_init = &reject_construction;
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(type->tp_dict)) {
    const auto attribute = key.cast<std::string>();
    const bool makes = attribute == "__init__" || attribute == "__new__";
    const std::string full = makes ? name : fmt::format("{}.{}", name, attribute);
    if (PyObject_TypeCheck(value.ptr(), &PyProperty_Type)) {
      const py::object getter = value.attr("fget");
      explain(getter.ptr(), full, true);
    } else {
      explain(value.ptr(), full, !makes && Py_TYPE(value.ptr()) != &PyStaticMethod_Type);
    }
  }
}

}  // namespace

void install_argument_errors(const py::module_& module) {
  PyTypeObject* const metaclass = py::detail::get_internals().default_metaclass;
  for (const auto& [key, value] : module.attr("__dict__").cast<py::dict>()) {
    const auto name = key.cast<std::string>();
    if (PyObject_TypeCheck(value.ptr(), metaclass)) {
      explain_class(reinterpret_cast<PyTypeObject*>(value.ptr()), name);
    } else {
      explain(value.ptr(), name.starts_with("_") && !name.starts_with("__") ? name.substr(1) : name, false);
    }
  }
  for (const auto& [name, function] : slow_paths()) explain(function, name, true);
}

}  // namespace artifex_devices::bindings
