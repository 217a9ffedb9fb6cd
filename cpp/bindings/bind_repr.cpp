// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <string>

#include "array_methods.h"
#include "artifex_devices/array/array_memory.h"
#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/device/memory_window.h"
#include "bindings.h"
#include "cpython_calls.h"
#include "python_modules.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

py::dict array_memory(const Array& self) {
  const ArrayMemory memory = memory_of(self);
  py::dict result;
  result["device_bytes_min"] = memory.device_bytes_min;
  result["device_bytes_max"] = memory.device_bytes_max;
  result["logical_bytes"] = memory.logical_bytes;
  result["physical_bytes"] = memory.physical_bytes;
  result["devices"] = memory.devices;
  result["buffers"] = memory.buffers;
  result["blocks"] = memory.blocks;
  result["foreign_blocks"] = memory.foreign_blocks;
  result["locked_blocks"] = memory.locked_blocks;
  result["slab_stride"] = memory.slab_stride;
  result["other_users"] = memory.other_users;
  result["is_shard"] = memory.is_shard;
  return result;
}

}  // namespace

void bind_array_repr(py::class_<Array, std::shared_ptr<Array>>& array) {
  array
      .def("__repr__",
           [](const py::object& self) { return call_python(python_modules::kArrayText, "array_repr", self); })
      .def("__str__", [](const py::object& self) { return call_python(python_modules::kArrayText, "array_str", self); })
      .def("_repr_html_", [](const py::object& self) { return call_python(python_modules::kHtml, "array_html", self); })
      .def(
          "describe",
          [](const py::object& self) -> py::str { return call_python(python_modules::kDescription, "describe", self); },
          R"(Returns a text of a few lines about its placement: dtype, shape, spec, mesh, bytes per device, aliasing, state.

Reads no element and never waits. Works for deleted Arrays too.

Example:
    >>> import numpy as np, artifex_devices as ad
    >>> print(ad.device_put(np.ones((2, 3)), ad.devices()[0]).describe())
    Array float64(2, 3), 48 bytes
      sharding  SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
      devices   cpu:0
      shards    1 of (2, 3)
      memory    48 bytes
      aliasing  none
      state     committed, ready
)");
}

void bind_repr(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def("array_memory", &array_memory, py::arg("array"));
  internal.def(
      "creation_line",
      [](const Array& array) -> py::object {
        const CallerLine* const line = array.creation_line();
        if (line == nullptr) return py::none();
        return py::make_tuple(line->file, line->line);
      },
      py::arg("array"));
}

}  // namespace artifex_devices::bindings
