// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <string>

#include "array_methods.h"
#include "artifex_devices/array/array_memory.h"
#include "artifex_devices/array/creation_line.h"
#include "artifex_devices/array/live_arrays.h"
#include "artifex_devices/device/memory_window.h"
#include "bindings.h"
#include "gil.h"
#include "python_modules.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

py::object attribute(PyObject* object, const char* name) {
  return py::reinterpret_steal<py::object>(PyObject_GetAttrString(object, name));
}

std::string text_of(PyObject* object) {
  Py_ssize_t length = 0;
  const char* text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : nullptr;
  return text ? std::string(text, static_cast<size_t>(length)) : std::string();
}

bool is_of_the_package(PyFrameObject* frame) {
  const py::object globals = attribute(reinterpret_cast<PyObject*>(frame), "f_globals");
  if (!globals || !PyDict_Check(globals.ptr())) return false;
  const std::string module = text_of(PyDict_GetItemString(globals.ptr(), "__name__"));
  return module == "artifex_devices" || module.starts_with("artifex_devices.");
}

/// The innermost Python frame outside the package. Takes the GIL; leaves no error behind.
std::optional<CreationLine> line_of_the_program() {
  const AcquireGil gil;
  if (!gil.acquired()) return std::nullopt;
  const py::error_scope keep_error;
  std::optional<CreationLine> found;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame && !found) {
    if (!is_of_the_package(frame)) {
      const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
      const py::object file = attribute(code.ptr(), "co_filename");
      found = CreationLine{text_of(file.ptr()), PyFrame_GetLineNumber(frame)};
    }
    PyErr_Clear();
    PyFrameObject* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return found;
}

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
           [](const py::object& self) {
             return py::module_::import(python_modules::kArrayText).attr("array_repr")(self);
           })
      .def("__str__",
           [](const py::object& self) {
             return py::module_::import(python_modules::kArrayText).attr("array_str")(self);
           })
      .def("_repr_html_",
           [](const py::object& self) { return py::module_::import(python_modules::kHtml).attr("array_html")(self); })
      .def(
          "describe",
          [](const py::object& self) -> py::str {
            return py::module_::import(python_modules::kDescription).attr("describe")(self);
          },
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
  module.def("_array_memory", &array_memory, py::arg("array"));
  module.def(
      "_creation_line",
      [](const Array& array) -> py::object {
        const std::optional<CreationLine> line = CreationLines::of(array);
        if (!line) return py::none();
        return py::make_tuple(line->file, line->line);
      },
      py::arg("array"));
  CreationLines::set_source(&line_of_the_program);
}

}  // namespace artifex_devices::bindings
