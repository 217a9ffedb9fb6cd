// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_machine.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/platform_version.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "python_modules.h"
#include "shown.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

py::list arrays_of(const Client& self) {
  py::list result;
  for (const ArrayRef& array : live_arrays(&self)) result.append(array);
  return result;
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

std::string repr_of(const Client& self) {
  const std::string processes =
      self.is_multi_process() ? fmt::format(", process {} of {}", self.process_index(), self.process_count()) : "";
  return fmt::format("<Client of {} {} device{}{}{}>", self.device_count(), self.platform(),
                     self.device_count() == 1 ? "" : "s", processes, self.is_closed() ? ", closed" : "");
}

void check_process(const Client& client, int process, const char* operation) {
  if (process >= 0 && process < client.process_count()) return;
  throw_error("{}: process_index names no process; expected {}, got {}; leave it out for this process", operation,
              client.is_multi_process() ? fmt::format("0 to {}", client.process_count() - 1) : "0, the only one",
              process);
}

py::list devices_of_process(Client& self, int process) {
  check_process(self, process, "local_devices");
  const py::tuple all = devices_of(self.shared_from_this());
  if (!self.is_multi_process()) return py::list(all);
  py::list result;
  for (int64_t i = 0; i < self.device_count(); ++i) {
    if (self.device(i)->process_index() == process) result.append(all[static_cast<size_t>(i)]);
  }
  return result;
}

// The order in which every part is stored that no layout was asked for.
py::object default_layout(const Client& self, const py::object& dtype, const py::object& shard_shape,
                          const py::object& device) {
  constexpr const char* kOperation = "get_default_layout";
  if (!py::isinstance<Device>(device)) {
    throw_error<TypeMismatch>("{}: device is of type {}; expected a Device, got {}; take it from client.devices()",
                              kOperation, Py_TYPE(device.ptr())->tp_name, shown(device));
  }
  if (&device.cast<const Device&>().client() != &self) {
    throw_error("{}: device {} belongs to another client; expected one of this {}; take it from client.devices()",
                kOperation, device.cast<const Device&>().repr(), repr_of(self));
  }
  dtype_from_python(dtype, kOperation);
  if (PyIndex_Check(shard_shape.ptr())) {
    throw_error<TypeMismatch>("{}: shard_shape is the number {}; expected a sequence of sizes; write ({},)", kOperation,
                              shown(shard_shape), shown(shard_shape));
  }
  const Dims sizes = dims_from_python(shard_shape, kOperation, "shard_shape");
  if (std::ranges::any_of(sizes, [](int64_t size) { return size < 0; })) {
    throw_error("{}: shard_shape has a negative size; expected sizes of 0 or more, got {}; correct it", kOperation,
                to_string(sizes));
  }
  const int64_t rank = sizes.size();
  py::tuple minor_to_major(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) minor_to_major[static_cast<size_t>(d)] = rank - 1 - d;
  const py::module_ core = py::module_::import(python_modules::kCore);
  return core.attr("PjRtLayout")(core.attr("Layout")(minor_to_major));
}

void bind_devices_of_client(py::class_<Client, std::shared_ptr<Client>>& client) {
  client
      .def(
          "devices", [](Client& self) { return py::list(devices_of(self.shared_from_this())); },
          "All devices, in order of id: a new list.")
      .def(
          "local_devices",
          [](Client& self, std::optional<int> process_index) {
            return devices_of_process(self, process_index.value_or(self.process_index()));
          },
          py::arg("process_index") = py::none(),
          R"(The devices of one process, this one unless another is named, in order of id: a new list.

Raises:
    ValueError: there is no such process.
)")
      .def("device_count", &Client::device_count, "How many devices there are, in all processes.")
      .def("local_device_count", &Client::local_device_count, "How many devices this process has.")
      .def("process_count", &Client::process_count, "How many processes share the world.")
      .def(
          "process_host",
          [](const Client& self, int process_index) {
            check_process(self, process_index, "process_host");
            return self.is_multi_process() ? self.process(process_index).host : std::string();
          },
          py::arg("process_index"),
          R"(The name of the machine that a process runs on, as it told the others; "" in a world that one process has alone.

Raises:
    ValueError: there is no such process.
)")
      .def("process_index", &Client::process_index, "Number of this process.")
      .def("host_id", &Client::process_index, "The older name of process_index.")
      .def(
          "device_from_local_hardware_id",
          [](Client& self, int64_t id) {
            if (id < 0 || id >= self.local_device_count()) {
              throw_error<Unavailable>(
                  "device_from_local_hardware_id: no device has the number {}; expected 0 to {}; see "
                  "Device.local_hardware_id",
                  id, self.local_device_count() - 1);
            }
            return handle_of(self.device(self.first_local_device() + id));
          },
          py::arg("local_hardware_id"),
          R"(The device of this process with a number; RuntimeError where there is none.)");
}

void bind_arrays_of_client(py::class_<Client, std::shared_ptr<Client>>& client) {
  client
      .def("live_arrays", &arrays_of, R"(The Arrays on its devices that are alive and not deleted, oldest first.

Example:
    >>> import numpy as np
    >>> from artifex_devices import xla_client
    >>> with xla_client.make_cpu_client(num_devices=1) as client:
    ...     x = client.buffer_from_pyval(np.arange(3))
    ...     client.live_arrays()
    [Array([0, 1, 2], dtype=int64)]
)")
      .def("live_buffers", &arrays_of, "The older name of live_arrays.")
      .def(
          "buffer_from_pyval",
          [](const py::object& self, const py::object& argument, const py::object& device, const py::object& force_copy,
             const py::object& semantics) {
            return py::module_::import(python_modules::kHostBuffer)
                .attr("buffer_from_pyval")(self, argument, device, force_copy, semantics);
          },
          py::arg("argument"), py::arg("device") = py::none(), py::arg("force_copy") = false,
          py::arg("host_buffer_semantics") = py::none(), R"(Places one array or number on one device.

The source has been read when it returns, but for HostBufferSemantics.ZERO_COPY.

Args:
    argument: ndarray of any strides, number, or Array; no tree.
    device: One of this client's devices; None for its first.
    force_copy: Copy in any case, also where the semantics allow to share memory.
    host_buffer_semantics: A HostBufferSemantics: what the library may do with the memory of `argument`. None is
        IMMUTABLE_ONLY_DURING_CALL.

Returns:
    Array on that device, committed.

Raises:
    TypeError: an argument is of another type.
    ValueError: the device belongs to another client.
    ResourceExhaustedError: out of memory (a MemoryError and a RuntimeError).
    RuntimeError: the client was closed.

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
            return py::module_::import(python_modules::kClientProfile).attr("heap_profile")(self);
          },
          R"(What its Arrays hold, as a pprof profile: bytes in the protocol buffer of google/pprof, not compressed.

One sample for each device and line of the program that made Arrays, with their number and logical bytes of all memory kinds
(counted); lines are known for Arrays that were made while `config.trace_allocations` was set.
)")
      .def(
          "get_default_layout",
          [](Client& self, const py::object& dtype, const py::object& shard_shape, const py::object& device) {
            return default_layout(self, dtype, shard_shape, device);
          },
          py::arg("dtype"), py::arg("shard_shape"), py::arg("device"),
          R"(The PjRtLayout in which a part of an Array is stored where no layout is asked for: row-major.

Args:
    dtype: np.dtype, or what makes one.
    shard_shape: Sequence of int: the shape of the part.
    device: One of this client's devices.

Raises:
    TypeError: an argument is of another type.
    ValueError: a negative size, or a device of another client.
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
          R"(Gives freed memory that is kept for reuse back to the system, that of other clients too. Arrays do not move.)")
      .def("close", &close_client, R"(Deletes its Arrays, and refuses to place others; twice is fine.

Memory goes back when the last view of it is gone. Arrays that other threads make at this moment may stay.

Raises:
    RuntimeError: it is an open world: the base client, or what a `simulate` block has opened.
)")
      .def_property_readonly("is_closed", &Client::is_closed, "Whether close() was called.")
      .def("__enter__",
           [](const py::object& self) {
             if (self.cast<const Client&>().is_closed()) {
               throw_error<Unavailable>(
                   "Client: it was closed; expected an open client in `with`; make another one by make_cpu_client()");
             }
             return self;
           })
      .def("__exit__", [](Client& self, const py::args&) { close_client(self); });
}

}  // namespace

void bind_client(py::module_& module) {
  module.attr("__version__") = library_version();
  // Made in world.cpp.
  auto client = py::reinterpret_borrow<py::class_<Client, std::shared_ptr<Client>>>(module.attr("Client"));
  client.def_property_readonly("_uid", &Client::uid)
      .def_property_readonly("platform", &Client::platform, "\"cpu\".")
      .def_property_readonly(
          "platform_version", [](const Client&) { return platform_version(); },
          "Versions of the library, its compiler and what it is built on, as text.")
      .def_property_readonly(
          "machine_source", [](const Client& self) { return self.machine().source(); },
          "\"live\", the path of an hwloc XML file, or a synthetic description.")
      .def_property_readonly("is_compile_only", &Client::is_compile_only, "Whether its devices have no memory.")
      .def_property_readonly(
          "cluster",
          [](const Client& self) -> py::object {
            const auto* machine = dynamic_cast<const ClusterMachine*>(&self.machine());
            if (machine == nullptr) return py::none();
            return py::cast(std::const_pointer_cast<Cluster>(machine->cluster()));
          },
          "The Cluster that its devices are of; None for those of a machine.")
      .def("__repr__", &repr_of);
  bind_devices_of_client(client);
  bind_arrays_of_client(client);
  bind_reports_of_client(client);
  bind_end_of_client(client);
}

}  // namespace artifex_devices::bindings
