// SPDX-License-Identifier: Apache-2.0
// Members that all classes share, set once the classes are bound.
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "bindings.h"
#include "python_modules.h"

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

/// `Class.__new__(Class)` returns an object without a C++ value, as its __init__ has not run. Using its value raises
/// TypeError from now on, where pybind11 (3.1) would return uninitialized memory.
void reject_uninitialized(const py::module_& module) {
  PyTypeObject* const metaclass = py::detail::get_internals().default_metaclass;
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!PyObject_TypeCheck(value.ptr(), metaclass)) continue;
    auto* info = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(value.ptr()));
    if (info != nullptr) info->operator_new = &raise;
  }
  py::register_local_exception_translator(&translate);
}

// Calls of classes without a constructor name the function that returns their objects.
constexpr std::pair<const char*, const char*> kSources[] = {
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

template <size_t kClass>
int reject(PyObject* /*self*/, PyObject* /*arguments*/, PyObject* /*keywords*/) {
  PyErr_Format(PyExc_TypeError, "%s: the class has no constructor; expected no call; use %s", kSources[kClass].first,
               kSources[kClass].second);
  return -1;
}

template <size_t... kClasses>
void reject_calls(const py::module_& module, std::index_sequence<kClasses...>) {
  const auto type = [&](const char* name) { return reinterpret_cast<PyTypeObject*>(module.attr(name).ptr()); };
  ((type(kSources[kClasses].first)->tp_init = &reject<kClasses>), ...);
}

/// Makes copy.copy and copy.deepcopy of immutable objects return the objects themselves.
void share_copies(const py::module_& module) {
  for (const char* name : {"Cluster", "Device", "DeviceList", "Memory", "Mesh", "Sharding"}) {
    const py::object type = module.attr(name);
    type.attr("__copy__") =
        py::cpp_function([](const py::object& self) { return self; }, py::is_method(type), py::name("__copy__"));
    type.attr("__deepcopy__") = py::cpp_function([](const py::object& self, py::handle) { return self; },
                                                 py::is_method(type), py::name("__deepcopy__"), py::arg("memo"));
  }
}

/// Sets the modules that users import the classes from: `__module__` names them, and so do pickles.
void name_public_modules(const py::module_& module) {
  const auto belong_to = [&](const std::string& path, std::initializer_list<const char*> names) {
    for (const char* name : names) module.attr(name).attr("__module__") = path;
  };
  const std::string package = python_modules::kPackage;
  belong_to(package, {"Array", "Client", "Device", "Machine", "Shard"});
  belong_to(package + ".cluster", {"Cluster"});
  belong_to(package + ".sharding",
            {"AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding"});
  belong_to(package + ".xla_client",
            {"DeviceAssignment", "DeviceList", "DeviceTopology", "Layout", "Memory", "PjRtLayout"});
  module.attr("internal").attr("Unconstrained").attr("__module__") = python_modules::kUnpickle;
}

}  // namespace

void finish_classes(const py::module_& module) {
  reject_uninitialized(module);
  reject_uninitialized(module.attr("internal"));
  reject_calls(module, std::make_index_sequence<std::size(kSources)>());
  share_copies(module);
  name_public_modules(module);
}

}  // namespace artifex_devices::bindings
