// SPDX-License-Identifier: Apache-2.0
// Memory: one device's view of one kind of memory; windows and profiles of memory; how a client allocates it.
#include <pybind11/stl.h>

#include <atomic>

#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/base/shape.h"
#include "artifex_devices/device/heap_profile.h"
#include "artifex_devices/device/memory.h"
#include "artifex_devices/device/memory_window.h"
#include "bindings.h"
#include "class_members.h"
#include "page_lock_warning.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_modules.h"
#include "python_owner.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

using MemoryHandle = std::shared_ptr<Memory>;

// Keeps the client alive; the same Python object while one is referenced.
MemoryHandle memory_of(Device& device, MemoryKind kind) {
  return {device.client().shared_from_this(), &device.memory(kind)};
}

py::dict stats_of(const Memory& self) {
  release_dropped_owners();
  if (self.device().is_compile_only()) return memory_stats_dict(self.stats(), nullptr);
  py::dict result = memory_stats_dict(self.stats(), &self.space());
  const MemorySpaceStats pool = self.space().stats();
  result["pool_bytes_preallocated"] = pool.bytes_preallocated;
  result["pool_bytes_locked"] = pool.bytes_locked;
  result["pool_bytes_not_locked"] = pool.bytes_not_locked;
  result["lock_limit_bytes"] = page_lock_limit();
  return result;
}

void bind_heap_profile(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  using Row = std::tuple<std::string, int64_t, int64_t, std::string, int64_t, std::string>;
  internal.def(
      "heap_profile",
      [](const std::vector<Row>& rows, int64_t time_ns) {
        std::vector<HeapSample> samples;
        samples.reserve(rows.size());
        for (const auto& [device, bytes, count, file, line, function] : rows) {
          samples.push_back(
              {.device = device, .count = count, .bytes = bytes, .file = file, .line = line, .function = function});
        }
        return py::bytes(heap_profile(samples, time_ns));
      },
      py::arg("samples"), py::arg("time_ns"));
}

void bind_memory_window(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<MemoryWindow>(internal, "MemoryWindow",
                           "Memory use of arrays on the devices of the current world, from now to close().")
      .def(py::init([] { return std::make_unique<MemoryWindow>(current_client()); }))
      .def("close", by_reference(&MemoryWindow::close), "Stops counting. A second call does nothing.")
      .def_property_readonly(
          "devices", [](const MemoryWindow& self) { return devices_of(self.client()); },
          "Devices of the window, by id (tuple of Device).")
      .def(
          "live",
          [](const MemoryWindow& self, int64_t top) {
            std::vector<ArrayRef> arrays = live_arrays(self.client().get());
            std::stable_sort(arrays.begin(), arrays.end(), [](const ArrayRef& a, const ArrayRef& b) {
              return a->on_device_size_in_bytes() > b->on_device_size_in_bytes();
            });
            int64_t bytes = 0;
            py::list biggest;
            for (const ArrayRef& array : arrays) {
              bytes += array->on_device_size_in_bytes();
              if (static_cast<int64_t>(biggest.size()) < top)
                biggest.append(py::make_tuple(array->on_device_size_in_bytes(), array));
            }
            return py::make_tuple(arrays.size(), bytes, biggest);
          },
          py::arg("top"),
          "Returns the number and bytes of the live Arrays of its world, and (bytes, Array) of the largest `top` ones.")
      .def("physical_bytes", by_reference(&MemoryWindow::physical_bytes),
           "Returns the bytes now in use, by all worlds, in the memories of the world's devices.")
      .def(
          "use",
          [](MemoryWindow& self) {
            return make_list(self.use(), [](const MemoryUse& use) {
              return py::make_tuple(use.at_start, use.in_use, use.peak, use.allocated, use.freed);
            });
          },
          "Returns (at_start, in_use, peak, allocated, freed) in bytes for each device.");
}

}  // namespace

void warn_of_unlocked_pages() {
  static std::atomic<int64_t> warned_in{-1};  // the process, by its number of forks: page locks are not inherited
  const int64_t here = fork_generation();
  if (warned_in.exchange(here) == here) return;
  if (PyErr_WarnEx(PyExc_UserWarning, page_lock_trouble().c_str(), 1) < 0) throw py::error_already_set();
}

void bind_memory(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<Memory, MemoryHandle>(module, "Memory",
                                   R"(One kind of memory of one device. Returned by `Device.memory(kind)`.

The kinds of a CPU device: `device`, pages near its cores and advised to be huge; `pinned_host`, the same locked in RAM as
far as RLIMIT_MEMLOCK allows; `unpinned_host`, ordinary pages. A sharding with that `memory_kind` places Arrays in one. Two
Memories are equal when they are the same kind of the same device.

Example:
    >>> import artifex_devices as ad
    >>> with ad.simulate(2):
    ...     ad.devices()[1].addressable_memories()
    [CPU_DEVICE_3, PINNED_HOST_4, UNPINNED_HOST_5]
)")
      .def_property_readonly(
          "process_index", [](const Memory& self) { return self.process_index().number(); },
          "Rank of the process that owns it.")
      .def_property_readonly("platform", by_reference(&Memory::platform), "Name of the platform, such as \"cpu\".")
      .def_property_readonly(
          "kind", [](const Memory& self) { return std::string(to_string(self.kind())); },
          "Memory kind: \"device\", \"pinned_host\" or \"unpinned_host\".")
      .def(
          "addressable_by_devices",
          [](const Memory& self) {
            py::list devices;
            devices.append(handle_of(&self.device()));
            return devices;
          },
          "Returns the devices that address it: its own device, as in JAX.")
      .def("stats", &stats_of, R"(Returns statistics of this memory in bytes.

`bytes_in_use`, `peak_bytes_in_use`, `bytes_reserved`, `largest_alloc_size` and `num_allocs` count the
memory of arrays of this kind on this device, each replica in full. `bytes_limit` is the device's limit; for a host kind,
which has no limit, it is the device's share of the machine's memory. `pool_*` are the physical bytes of this kind near the
device's NUMA node, which its devices share: `pool_bytes_locked` of them are locked in RAM, and `pool_bytes_not_locked` are
in use but could not be locked. `lock_limit_bytes` is RLIMIT_MEMLOCK, or -1 for no limit; privileged processes ignore it.

Returns:
    dict of str to int. Source: counted by the library.
)")
      .def(
          "__eq__",
          [](const Memory& self, py::handle other) {
            return py::isinstance<Memory>(other) && &self == &other.cast<const Memory&>();
          },
          py::is_operator())
      .def("__hash__",
           [](const Memory& self) {
             const size_t client = static_cast<size_t>(self.device().client().uid());
             return hash_mix(hash_mix(client, static_cast<size_t>(self.id())), 3) >> 2;
           })
      .def("__reduce__",
           [](const Memory& self) -> py::tuple {
             return pickled_by("memory", self.platform(), self.device().id().number(),
                               std::string(to_string(self.kind())));
           })
      .def("__str__", by_reference(&Memory::to_string))
      .def("__repr__", by_reference(&Memory::repr));

  auto device = py::reinterpret_borrow<py::class_<Device, std::shared_ptr<Device>>>(module.attr("Device"));
  device
      .def(
          "memory",
          [](Device& self, const TextArgument& kind) {
            return memory_of(self, memory_kind_of_device(self, text_from_python(kind, "Device.memory", "kind")));
          },
          py::arg("kind"), R"(Returns its memory of one kind.

Args:
    kind: "device" or "default", "pinned_host" or "pinned", or "unpinned_host".

Raises:
    RuntimeError: The kind is unknown, as in JAX.
)")
      .def(
          "default_memory", [](Device& self) { return memory_of(self, MemoryKind::kDevice); },
          "Returns the memory that arrays are placed in by default.")
      .def(
          "addressable_memories",
          [](Device& self) { return make_list(kMemoryKinds, [&](MemoryKind kind) { return memory_of(self, kind); }); },
          "Returns its memories of all kinds, the default one first.");

  internal.def(
      "find_memory",
      [](const std::string& platform, int64_t id, const std::string& kind) {
        Device& found = *find_devices(platform, {id})[0];
        return memory_of(found, memory_kind_of_device(found, kind));
      },
      py::arg("platform"), py::arg("id"), py::arg("kind"));
  internal.def(
      "canonical_memory_kind",
      [](const std::optional<std::string>& kind, const std::vector<Device*>& devices) -> std::optional<std::string> {
        const auto found = canonical_memory_kind(kind ? std::optional<std::string_view>(*kind) : std::nullopt, devices);
        return found ? std::optional(std::string(to_string(*found))) : std::nullopt;
      },
      py::arg("kind").none(true), py::arg("devices"));
  auto client = py::reinterpret_borrow<py::class_<Client, ClientRef>>(module.attr("Client"));
  client.def_property_readonly(
      "allocator_config",
      [](const Client& self) -> py::object {
        const std::optional<AllocatorOptions>& options = self.allocator();
        if (!options) return py::none();
        return py::module_::import(python_modules::kAllocatorConfig)
            .attr("GpuAllocatorConfig")(static_cast<int>(options->kind), options->memory_fraction, options->preallocate,
                                        options->collective_memory_size);
      },
      "GpuAllocatorConfig that it was created with, or None.");
  internal.def(
      "check_allocator",
      [](int kind, double memory_fraction, bool preallocate, int64_t collective_memory_size) {
        AllocatorOptions{static_cast<AllocatorKind>(kind), memory_fraction, preallocate, collective_memory_size}.check(
            "GpuAllocatorConfig");
      },
      py::arg("kind"), py::arg("memory_fraction"), py::arg("preallocate"), py::arg("collective_memory_size"));
  bind_memory_window(module);
  bind_heap_profile(module);
}

}  // namespace artifex_devices::bindings
