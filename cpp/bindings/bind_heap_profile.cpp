// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>

#include "artifex_devices/device/heap_profile.h"
#include "device_values.h"

namespace artifex_devices::bindings {

void bind_heap_profile(py::module_& module) {
  using Row = std::tuple<std::string, int64_t, int64_t, std::string, int64_t, std::string>;
  module.def(
      "_heap_profile",
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

}  // namespace artifex_devices::bindings
