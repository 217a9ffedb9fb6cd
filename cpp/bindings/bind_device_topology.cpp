// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/device_topology.h"
#include "artifex_devices/device/platform_version.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

py::list device_descriptions(const DeviceTopology& self) {
  py::list rows;
  for (const TopologyDevices& run : self.devices()) {
    const CpuDomain& domain = self.machine()->cpu_domains()[static_cast<size_t>(run.cpu_domain)];
    py::list nodes;
    nodes.append(domain.default_node);
    for (const int node : domain.nodes) {
      if (node != domain.default_node) nodes.append(node);
    }
    const std::string cpus = domain.cpus.to_string();
    for (int64_t i = 0; i < run.count; ++i) {
      py::dict row;
      row["id"] = run.first_id + i;
      row["kind"] = run.kind;
      row["process_index"] = run.process_index;
      row["cpu_domain"] = run.cpu_domain;
      row["cpuset"] = cpus;
      row["numa_nodes"] = nodes.attr("copy")();
      row["memory_bytes"] = run.memory_bytes;
      row["memory_kinds"] = py::tuple(py::cast(run.memory_kinds));
      rows.append(row);
    }
  }
  return rows;
}

py::list make_compile_only_devices(const DeviceTopology& self) {
  const ClientRef client = [&] {
    const ReleaseGil release;
    return self.make_compile_only_client();
  }();
  py::list devices;
  for (const DeviceId id : client->device_ids()) devices.append(handle_of(client->device(id)));
  return devices;
}

DeviceTopology topology_from_bytes(const py::object& data) {
  const std::string bytes = bytes_argument(data, "DeviceTopology.deserialize", DeviceTopology::kMostBytes);
  const ReleaseGil release;
  return DeviceTopology::deserialize(bytes);
}

DeviceTopology topology_for_devices(const py::object& devices) {
  constexpr std::string_view kOperation = "get_topology_for_devices";
  if (!is_iterable(devices) || py::isinstance<py::str>(devices)) {
    throw_error<TypeMismatch>("{}: devices is of type {}; expected a sequence of Device; write devices()", kOperation,
                              Py_TYPE(devices.ptr())->tp_name);
  }
  py::object first = py::none();
  Client* client = nullptr;
  int64_t position = 0;
  for (const py::handle item : devices) {
    if (!py::isinstance<Device>(item)) {
      throw_error<TypeMismatch>("{}: item {} of devices is of type {}; expected a Device; take them from devices()",
                                kOperation, position, Py_TYPE(item.ptr())->tp_name);
    }
    const auto& device = item.cast<const Device&>();
    if (client == nullptr) {
      client = &device.client();
      first = py::reinterpret_borrow<py::object>(item);  // keeps the client alive
    } else if (client != &device.client()) {
      throw_error(
          "{}: the devices come from different clients: {} at position 0 is of client {}, {} at position {} of client "
          "{}; expected devices of one client; call it once for each client",
          kOperation, first.cast<const Device&>().to_string(), client->uid(), device.to_string(), position,
          device.client().uid());
    }
    if (position >= client->device_count()) {  // an iterator may have no end
      throw_error("{}: devices has more than {} entries; expected each of the {} devices at most once; write devices()",
                  kOperation, client->device_count(), client->device_count());
    }
    ++position;
  }
  if (client == nullptr) throw_error("{}: devices is empty; expected at least one device; write devices()", kOperation);
  return DeviceTopology::of(*client, platform_version());
}

}  // namespace

void bind_device_topology(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<DeviceTopology>(module, "DeviceTopology",
                             R"(The devices of a client and their machine, as a value.

It can be stored or sent as bytes and used elsewhere to plan. Topologies with equal bytes are equal.

Example:
    >>> import artifex_devices as ad
    >>> from artifex_devices import xla_client
    >>> with ad.simulate("2 nodes x 4"):
    ...     topology = xla_client.get_topology_for_devices(ad.devices())
    >>> same = xla_client.DeviceTopology.deserialize(topology.serialize())
    >>> same == topology, same.device_descriptions[7]["cpuset"], same.device_descriptions[7]["numa_nodes"]
    (True, '4-7', [1])
    >>> mesh = ad.Mesh(same._make_compile_only_devices(), ("data",))
    >>> ad.NamedSharding(mesh, ad.P("data")).shard_shape((32, 3))
    (4, 3)
)")
      .def_property_readonly("platform", by_reference(&DeviceTopology::platform),
                             "Name of the platform, such as \"cpu\".")
      .def_property_readonly("platform_version", by_reference(&DeviceTopology::platform_version),
                             "Version text of the platform of the described devices.")
      .def_property_readonly(
          "machine",
          [](const DeviceTopology& self) {
            return std::shared_ptr<Machine>(std::const_pointer_cast<DescribedMachine>(self.machine()));
          },
          "Machine with its counts, NUMA nodes and CPU domains, but without hwloc's tree (to_xml raises RuntimeError).")
      .def_property_readonly("device_descriptions", &device_descriptions,
                             "List of one dict for each device: id, kind, process_index, cpu_domain, cpuset, "
                             "numa_nodes, memory_bytes, memory_kinds.")
      .def("_make_compile_only_devices", &make_compile_only_devices, R"(Returns new devices like these, to plan with.

Returns:
    list of Device of a new client: meshes and shardings work, placing raises RuntimeError.

Raises:
    RuntimeError: This version has no devices of that platform or kind.
)")
      .def(
          "serialize", [](const DeviceTopology& self) { return py::bytes(self.serialize()); },
          "Returns the topology as a protobuf message (docs/formats/README.md). Equal topologies have equal bytes.")
      .def_static("deserialize", &topology_from_bytes, py::arg("data"),
                  R"(Reads the bytes of `serialize`. Skips fields that a newer version added.

Raises:
    TypeError: `data` is not a bytes-like object.
    ValueError: The bytes are damaged, of another major version, or not a topology.
)")
      .def("fingerprint", by_reference(&DeviceTopology::fingerprint),
           "Returns a 64-bit number that is equal for equal topologies, in all processes.")
      .def("__eq__", &equals<DeviceTopology>)
      .def("__hash__", [](const DeviceTopology& self) { return static_cast<size_t>(self.fingerprint()); })
      .def("__reduce__",
           [](const py::object& self) -> py::tuple { return pickled_by("device_topology", self.attr("serialize")()); })
      .def("__repr__", [](const DeviceTopology& self) {
        return fmt::format("DeviceTopology(platform='{}', {} device{} on {})", self.platform(), self.device_count(),
                           self.device_count() == 1 ? "" : "s", self.machine()->source());
      });

  module.def("get_topology_for_devices", &topology_for_devices, py::arg("devices"),
             R"(Returns the topology of all devices of the client that `devices` belong to, as in JAX.

Raises:
    TypeError: `devices` is not a sequence of Device.
    ValueError: `devices` is empty, or they belong to different clients.
)");
  internal.def("device_topology", &topology_from_bytes, py::arg("data"));  // for pickles, which cannot name methods
}

}  // namespace artifex_devices::bindings
