// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/device/device_list.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_modules.h"
#include "recent_cache.h"
#include "value_slots.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

void check_addressable(const Device& device, const char* operation) {
  if (device.is_addressable()) return;
  throw_error<NotAddressable>(
      "{}: {} belongs to process {}; expected a device of this process, {}; call it in that process", operation,
      device.to_string(), device.process_index().number(), device.client().process_index().number());
}

py::dict memory_stats(const Device& self) {
  check_addressable(self, "memory_stats");
  return memory_stats_dict(self.memory_stats(), self.is_compile_only() ? nullptr : &self.space(MemoryKind::kDevice));
}

py::list live_buffers(Device& self) {
  check_addressable(self, "live_buffers");
  py::list result;
  for (const ArrayRef& array : live_arrays(&self.client())) {
    const DeviceList& devices = *array->sharding()->devices();
    const Position position = devices.position_of(&self);
    if (position.is_none()) continue;
    if (devices.size() == 1) {
      result.append(array);
      continue;
    }
    try {
      result.append(array->shard_data(position));
    } catch (const DeletedArray&) {  // by another thread since the list was made
    }
  }
  return result;
}

// As in JAX, a CPU has no such attributes.
ClusterPlace place_in(const Device& device, const char* attribute, bool of_torus) {
  const Cluster* cluster = cluster_of(device.client());
  if (cluster == nullptr || (of_torus && cluster->inside().kind != NetworkKind::kTorus)) {
    throw py::attribute_error(
        fmt::format("{}: {} does not have it; expected a device of a cluster{}; see cluster.devices()", attribute,
                    device.repr(), of_torus ? " with a torus" : ""));
  }
  return cluster->place_of(device.id().number());
}

}  // namespace

std::vector<Device*> find_devices(const std::string& platform, const std::vector<int64_t>& numbers) {
  const ClientRef client = client_of_platform(platform);
  const std::vector<DeviceId> ids(numbers.begin(), numbers.end());
  return find_devices(client ? *client : *current_client(), platform, ids, "unpickle");
}

size_t device_hash(const Device& device) {
  return hash_mix(static_cast<size_t>(device.client().uid()), static_cast<size_t>(device.id().number()));
}

bool same_device(const Device& a, const Device& b) { return &a == &b; }

void bind_device(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<Device, std::shared_ptr<Device>>(module, "Device", ValueSlots<Device, &device_hash, &same_device>::setup(),
                                              R"(One device: on a CPU, a set of cores and the memory near them.

Two Devices are equal when they are the same device of the same world. A Device is callable and returns itself:
`array.device` and `array.device()` are both valid.

Example:
    >>> import artifex_devices as ad
    >>> with ad.simulate(2):
    ...     ad.devices()
    [CpuDevice(id=0), CpuDevice(id=1)]
)")
      .def_property_readonly(
          "id", [](const Device& self) { return self.id().number(); }, "Number of the device in its world, from 0.")
      .def_property_readonly("platform", by_reference(&Device::platform),
                             "Name of the platform: \"cpu\", and for devices of a cluster also \"tpu\" or \"gpu\".")
      .def_property_readonly("device_kind", by_reference(&Device::device_kind),
                             "Name of the hardware, such as \"cpu\" or \"TPU v5p\".")
      .def_property_readonly(
          "process_index", [](const Device& self) { return self.process_index().number(); },
          "Rank of the process that owns the device.")
      .def_property_readonly(
          "host_id", [](const Device& self) { return self.process_index().number(); },
          "The older name of process_index.")
      .def_property_readonly(
          "coords",
          [](const Device& self) {
            const auto at = place_in(self, "coords", true).coords;
            return py::make_tuple(at[0], at[1], at[2]);
          },
          "Coordinates (x, y, z) of its chip in the torus. AttributeError unless the device belongs to a cluster with "
          "a torus.")
      .def_property_readonly(
          "core_on_chip", [](const Device& self) { return place_in(self, "core_on_chip", true).core_on_chip; },
          "Number of the device on its chip. AttributeError unless the device belongs to a cluster with a torus.")
      .def_property_readonly(
          "slice_index", [](const Device& self) { return place_in(self, "slice_index", false).slice; },
          "Number of its slice, or of its switch domain. AttributeError unless the device belongs to a cluster.")
      .def_property_readonly("local_hardware_id", by_reference(&Device::local_hardware_id),
                             "Number of the device in its process.")
      .def_property_readonly(
          "client", [](Device& self) { return self.client().shared_from_this(); },
          "Client (world) that the device belongs to.")
      .def_property_readonly(
          "cpuset", [](const Device& self) { return self.domain().cpus.to_string(); },
          "CPUs that the device owns, by operating-system number, such as \"0-3,8\"; \"\" for devices of a cluster.")
      .def_property_readonly(
          "numa_nodes",
          [](const Device& self) {
            py::list nodes;
            if (cluster_of(self.client())) return nodes;  // its hosts are unknown
            nodes.append(self.domain().default_node);
            for (const int node : self.domain().nodes) {
              if (node != self.domain().default_node) nodes.append(node);
            }
            return nodes;
          },
          "NUMA nodes of its memory (logical numbers), the preferred node first; empty for devices of a cluster.")
      .def_property_readonly("memory_bytes", by_reference(&Device::memory_bytes),
                             R"(Number of bytes of memory: the device's share of its NUMA node or cgroup.

For a device of a cluster, the memory of its chip, or 0 if unknown.
)")
      .def_property_readonly("is_compile_only", by_reference(&Device::is_compile_only),
                             "Whether the device has no memory (planning).")
      .def("memory_stats", &memory_stats, R"(Returns statistics of the device's memory in bytes, never None.

`bytes_in_use`, `peak_bytes_in_use`, `bytes_limit`, `bytes_reserved`, `largest_alloc_size` and `num_allocs` count the memory
of arrays of the kind `device` here, each replica in full; without a limit, `bytes_limit` is `memory_bytes`. `pool_*` are the
physical bytes of the NUMA node, which its devices share.

Returns:
    dict of str to int. Source: counted by the library.

Raises:
    RuntimeError: The device belongs to another process.
)")
      .def_property_readonly(
          "bytes_limit", by_reference(&Device::bytes_limit),
          "Number of bytes that arrays may use on it, as set by set_bytes_limit or simulate, or None for no limit.")
      .def(
          "set_bytes_limit",
          [](Device& self, const py::typing::Optional<py::int_>& argument) {
            std::optional<int64_t> limit;
            if (!argument.is_none()) limit = index_from_python(argument, "set_bytes_limit", "limit");
            if (limit && *limit < 0) {
              throw_error("set_bytes_limit: limit is {}; expected a number of bytes, 0 or more, or None for no limit",
                          *limit);
            }
            check_addressable(self, "set_bytes_limit");
            self.set_bytes_limit(limit);
          },
          py::arg("limit"), R"(Sets the number of bytes that arrays may use on this device; None removes the limit.

Beyond it, placing raises ResourceExhaustedError (a MemoryError and a RuntimeError). Memory in use is not affected.

Raises:
    TypeError: `limit` is not an int, or is a bool.
    ValueError: `limit` is negative or does not fit 64 bits.
    RuntimeError: The device belongs to another process.
)")
      .def("live_buffers", &live_buffers, R"(Returns the data of Arrays on this device, oldest Array first.

Returns:
    list of Array, each on this device alone: an Array of this device, or the shard of an Array on several devices. Deleting
    a shard deletes its Array.

Example:
    >>> import numpy as np
    >>> from artifex_devices import xla_client
    >>> client = xla_client.make_cpu_client(num_devices=2)
    >>> buffer = client.buffer_from_pyval(np.arange(3), device=client.devices()[1])
    >>> [len(device.live_buffers()) for device in client.devices()]
    [0, 1]
)")
      .def(
          "get_stream_for_external_ready_events",
          [](const Device& self) -> int64_t {
            throw_error<Unavailable>(
                "get_stream_for_external_ready_events: {} has no stream; expected a GPU, got {}; wait for an Array by "
                "block_until_ready()",
                self.to_string(),
                self.platform() == "gpu" ? "an emulated one" : "a device of platform " + self.platform());
          },
          R"(Returns the stream whose events report when data is ready; CPU devices and emulated GPUs have none.

Raises:
    RuntimeError: Always.
)")
      .def(
          "__call__", [](py::object self) { return self; }, "Returns the device itself.")
      .def("__reduce__",
           [](const Device& self) -> py::tuple { return pickled_by("device", self.platform(), self.id().number()); })
      .def("__str__", by_reference(&Device::to_string))
      .def("__repr__", by_reference(&Device::repr));

  internal.def(
      "find_device", [](const std::string& platform, int64_t id) { return handle_of(find_devices(platform, {id})[0]); },
      py::arg("platform"), py::arg("id"));
  internal.def("devices", [] { return py::list(devices_of(current_client())); });
  internal.def(
      "forget_recent", [] { clear_recent_caches(nullptr); }, "Clears the caches of meshes, shardings and index maps.");
  internal.def("trim", [] {
    const ReleaseGil release;
    return Arena::trim_all();
  });
  internal.def(
      "allocate_and_free",
      [](int64_t nbytes, int64_t times, bool touch) {
        constexpr int64_t kPage = 4096;
        const ReleaseGil release;
        for (int64_t i = 0; i < times; ++i) {
          const BlockRef block = Arena::of_node(0).allocate(nbytes);
          for (int64_t at = 0; touch && at < nbytes; at += kPage) block->host_data()[at] = std::byte{1};
        }
      },
      py::arg("nbytes"), py::arg("times"), py::arg("touch"),
      R"(Allocates and frees a block of memory `times` times, for the benchmark family `threads`.

With `touch`, it writes to each page of the block.
)");
}

}  // namespace artifex_devices::bindings
