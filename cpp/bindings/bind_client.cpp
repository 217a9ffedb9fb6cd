// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>

#include "artifex_devices/array/layout.h"
#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_machine.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/platform_version.h"
#include "bindings.h"
#include "class_members.h"
#include "cpython_calls.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"
#include "python_text.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

py::list arrays_of(const Client& self) {
  return make_list(live_arrays(&self), [](const ArrayRef& array) { return array; });
}

void close_client(Client& self) {
  if (is_open_world(self)) {
    throw_error<Unavailable>(
        "Client.close: this client is an open world; expected one of make_cpu_client; leave its `with simulate(...)` "
        "block, or let the process end");
  }
  const ReleaseGil release;
  self.close();
  for (const ArrayRef& array : live_arrays(&self)) array->delete_();
}

std::string client_repr(const Client& self) {
  const std::string processes =
      self.is_multi_process() ? fmt::format(", process {} of {}", self.process_index().number(), self.process_count())
                              : "";
  return fmt::format("<Client of {} {} device{}{}{}>", self.device_count(), self.platform(),
                     self.device_count() == 1 ? "" : "s", processes, self.is_closed() ? ", closed" : "");
}

py::list devices_of_process(Client& self, ProcessIndex process) {
  self.check_process(process, "local_devices");
  const py::tuple all = devices_of(self.shared_from_this());
  if (!self.is_multi_process()) return py::list(all);
  py::list result;
  for (const DeviceId id : self.device_ids()) {
    if (self.device(id)->process_index() == process) result.append(all[static_cast<size_t>(id.number())]);
  }
  return result;
}

// The layout of shards whose layout the caller did not choose.
py::object default_layout(const Client& self, const py::object& dtype, const py::object& shard_shape,
                          const py::object& device) {
  constexpr const char* kOperation = "get_default_layout";
  if (!py::isinstance<Device>(device)) {
    throw_error<TypeMismatch>("{}: device is of type {}; expected a Device, got {}; take it from client.devices()",
                              kOperation, Py_TYPE(device.ptr())->tp_name, safe_repr(device));
  }
  if (&device.cast<const Device&>().client() != &self) {
    throw_error("{}: device {} belongs to another client; expected one of this {}; take it from client.devices()",
                kOperation, device.cast<const Device&>().repr(), client_repr(self));
  }
  dtype_from_python(dtype, kOperation);
  if (PyIndex_Check(shard_shape.ptr())) {
    throw_error<TypeMismatch>("{}: shard_shape is the number {}; expected a sequence of sizes; write ({},)", kOperation,
                              safe_repr(shard_shape), safe_repr(shard_shape));
  }
  const Dims sizes = dims_from_python(shard_shape, kOperation, "shard_shape");
  if (std::ranges::any_of(sizes, [](int64_t size) { return size < 0; })) {
    throw_error("{}: shard_shape has a negative size; expected sizes of 0 or more, got {}; correct it", kOperation,
                to_string(sizes));
  }
  return py::module_::import(python_modules::kCore).attr("PjRtLayout")(Layout::row_major(sizes.size()));
}

void bind_devices_of_client(py::class_<Client, std::shared_ptr<Client>>& client) {
  client
      .def(
          "devices", [](Client& self) { return py::list(devices_of(self.shared_from_this())); },
          "Returns a new list of all devices, in order of id.")
      .def(
          "local_devices",
          [](Client& self, const py::typing::Optional<py::int_>& process_index) {
            if (process_index.is_none()) return devices_of_process(self, self.process_index());
            const int64_t number = index_from_python(process_index, "Client.local_devices", "process_index");
            return devices_of_process(self, ProcessIndex(number));
          },
          py::arg("process_index") = py::none(),
          R"(Returns a new list of the devices of one process, by default this process, in order of id.

Raises:
    ValueError: The process does not exist.
)")
      .def("device_count", by_reference(&Client::device_count), "Returns the number of devices in all processes.")
      .def("local_device_count", by_reference(&Client::local_device_count),
           "Returns the number of devices of this process.")
      .def("process_count", by_reference(&Client::process_count),
           "Returns the number of processes that share the world.")
      .def(
          "process_host",
          [](const Client& self, const IntArgument& process_index) {
            const ProcessIndex process(index_from_python(process_index, "Client.process_host", "process_index"));
            self.check_process(process, "process_host");
            return self.is_multi_process() ? self.process(process).host : std::string();
          },
          py::arg("process_index"),
          R"(Returns the host name of the machine that a process runs on; "" in a world of one process.

Raises:
    ValueError: The process does not exist.
)")
      .def(
          "process_index", [](const Client& self) { return self.process_index().number(); },
          "Returns the rank of this process.")
      .def(
          "host_id", [](const Client& self) { return self.process_index().number(); },
          "Returns process_index(). This is its older name.")
      .def(
          "device_from_local_hardware_id",
          [](const Client& self, const IntArgument& id) {
            return handle_of(
                self.local_device(index_from_python(id, "Client.device_from_local_hardware_id", "local_hardware_id")));
          },
          py::arg("local_hardware_id"),
          "Returns the device of this process with this local_hardware_id. Raises RuntimeError if there is "
          "none.");
}

void bind_arrays_of_client(py::class_<Client, std::shared_ptr<Client>>& client) {
  client
      .def("live_arrays", &arrays_of, R"(Returns the Arrays on its devices that are alive and not deleted, oldest first.

Example:
    >>> import numpy as np
    >>> from artifex_devices import xla_client
    >>> with xla_client.make_cpu_client(num_devices=1) as client:
    ...     x = client.buffer_from_pyval(np.arange(3))
    ...     client.live_arrays()
    [Array([0, 1, 2], dtype=int64)]
)")
      .def("live_buffers", &arrays_of, "Returns live_arrays(). This is its older name.")
      .def(
          "buffer_from_pyval",
          [](const py::object& self, const py::object& argument, const py::object& device, const py::object& force_copy,
             const py::object& semantics) {
            return call_python(python_modules::kHostBuffer, "buffer_from_pyval", self, argument, device, force_copy,
                               semantics);
          },
          py::arg("argument"), py::arg("device") = py::none(), py::arg("force_copy") = false,
          py::arg("host_buffer_semantics") = py::none(), R"(Places one array or number on one device.

The source has been read when it returns, except with HostBufferSemantics.ZERO_COPY.

Args:
    argument: ndarray of any strides, number, or Array, but not a tree.
    device: One of this client's devices, or None for the first.
    force_copy: Whether to copy even where the semantics allow sharing memory.
    host_buffer_semantics: HostBufferSemantics that says how the library may use the memory of `argument`, or None for
        IMMUTABLE_ONLY_DURING_CALL.

Returns:
    Array on that device, committed.

Raises:
    TypeError: An argument has another type.
    ValueError: The device belongs to another client.
    ResourceExhaustedError: Memory is exhausted (a MemoryError and a RuntimeError).
    RuntimeError: The client was closed.

Example:
    >>> import numpy as np
    >>> from artifex_devices import xla_client
    >>> client = xla_client.make_cpu_client(num_devices=2)
    >>> client.buffer_from_pyval(np.arange(3), device=client.devices()[1]).device
    CpuDevice(id=1)
)");
}

void bind_reports_of_client(py::class_<Client, std::shared_ptr<Client>>& client) {
  client
      .def(
          "heap_profile",
          [](const py::object& self) -> py::bytes {
            return call_python(python_modules::kClientProfile, "heap_profile", self);
          },
          R"(Returns the memory of its Arrays as a pprof profile: bytes of google/pprof's protocol buffer, not compressed.

It has one sample for each device and line of the program that created Arrays, with their number and their bytes in all
memory kinds, replicas counted. Lines are known for Arrays created while `config.trace_allocations` was set.
)")
      .def(
          "get_default_layout",
          [](Client& self, const py::object& dtype, const py::object& shard_shape, const py::object& device) {
            return default_layout(self, dtype, shard_shape, device);
          },
          py::arg("dtype"), py::arg("shard_shape"), py::arg("device"),
          R"(Returns the PjRtLayout in which shards are stored by default: row-major.

Args:
    dtype: np.dtype, or an argument of np.dtype().
    shard_shape: Shape of the shard (sequence of int).
    device: One of this client's devices.

Raises:
    TypeError: An argument has another type.
    ValueError: A size is negative, or the device belongs to another client.
)");
}

void bind_end_of_client(py::class_<Client, std::shared_ptr<Client>>& client) {
  client
      .def(
          "defragment",
          [](Client&) {
            const ReleaseGil release;
            Arena::trim_all();
          },
          "Returns cached free memory of all clients to the operating system. Arrays do not move.")
      .def("close", &close_client,
           R"(Deletes the client's Arrays and refuses to place others. A second call does nothing.

Memory is freed when its last view is gone. Arrays that other threads create at the same time may remain.

Raises:
    RuntimeError: The client is an open world: the base client, or the client of an open `simulate` block.
)")
      .def_property_readonly("is_closed", by_reference(&Client::is_closed), "Whether close() was called.")
      .def("__enter__",
           [](const py::object& self) {
             if (self.cast<const Client&>().is_closed()) {
               throw_error<Unavailable>(
                   "Client: the client was closed; expected an open client in `with`; create one by make_cpu_client()");
             }
             return self;
           })
      .def("__exit__", [](Client& self, const py::args&) { close_client(self); });
}

}  // namespace

void bind_client(py::module_& module) {
  module.attr("__version__") = library_version();
  // Created in world.cpp.
  auto client = py::reinterpret_borrow<py::class_<Client, std::shared_ptr<Client>>>(module.attr("Client"));
  client.def_property_readonly("_uid", by_reference(&Client::uid))
      .def_property_readonly("platform", by_reference(&Client::platform), "Name of the platform, such as \"cpu\".")
      .def_property_readonly(
          "_is_emulated", [](const Client& self) { return self.backend().is_emulated(); },
          "Whether the devices are GPUs that the CPU emulates.")
      .def_property_readonly(
          "platform_version", [](const Client&) { return platform_version(); },
          "Versions of the library, its compiler and its dependencies, as text.")
      .def_property_readonly(
          "machine_source", [](const Client& self) { return self.machine().source(); },
          "Source of the machine's description: \"live\", the path of an hwloc XML file, or a synthetic description.")
      .def_property_readonly("is_compile_only", by_reference(&Client::is_compile_only),
                             "Whether its devices have no memory (planning only).")
      .def_property_readonly(
          "cluster",
          [](const Client& self) -> py::object {
            const auto* machine = dynamic_cast<const ClusterMachine*>(&self.machine());
            if (machine == nullptr) return py::none();
            return py::cast(std::const_pointer_cast<Cluster>(machine->cluster()));
          },
          "Cluster that its devices belong to, or None for devices of a machine.")
      .def("__repr__", &client_repr);
  bind_devices_of_client(client);
  bind_arrays_of_client(client);
  bind_reports_of_client(client);
  bind_end_of_client(client);
}

}  // namespace artifex_devices::bindings
