// SPDX-License-Identifier: Apache-2.0
// Calls of classes that have no constructor name the function that returns their objects.
#include <cstddef>
#include <iterator>
#include <utility>

#include "bindings.h"

namespace artifex_devices::bindings {
namespace {

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

}  // namespace

void reject_constructions(py::module_& module) {
  reject_calls(module, std::make_index_sequence<std::size(kSources)>());
}

}  // namespace artifex_devices::bindings
