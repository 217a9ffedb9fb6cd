// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/measure/measured_rates.h"
#include "bindings.h"
#include "gil.h"
#include "pybind.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

py::dict series_to_python(const RateSeries& series) {
  py::dict result;
  result["rates"] = series.rates;
  result["shares"] = series.shares;
  result["workers"] = series.workers;
  result["bound_workers"] = series.bound_workers;
  return result;
}

using DeviceOrAll = std::optional<std::shared_ptr<Device>>;

std::vector<LaneId> lanes_for(const DeviceOrAll& device) {
  if (device) return lanes_of(**device);
  current_client();  // gives the workers their lanes
  return all_lanes();
}

}  // namespace

void bind_roofline(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "measure_gemm",
      [](const DeviceOrAll& device, const std::string& isa, const std::string& dtype, double seconds,
         double window_seconds) {
        const Isa chosen = isa_from_name(isa, "measure_roofline: isa");
        const DType type = dtype_from_name(dtype).value();
        const std::vector<LaneId> lanes = lanes_for(device);
        prepare_gemm(chosen);
        const auto series =
            without_gil([&] { return measure_gemm_rate(lanes, chosen, type, {seconds, window_seconds}); });
        return series_to_python(series);
      },
      py::arg("device"), py::arg("isa"), py::arg("dtype"), py::arg("seconds"), py::arg("window_seconds"),
      R"(Measures the FLOP/s of matrix products on the workers of a device, or of all devices for None.

Returns:
    dict of `rates`, `shares`, `workers` and `bound_workers`.
)");
  internal.def(
      "measure_streams",
      [](const DeviceOrAll& device, double seconds, double window_seconds) {
        const std::vector<LaneId> lanes = lanes_for(device);
        const auto rates = without_gil([&] { return measure_stream_rates(lanes, {seconds, window_seconds}); });
        py::dict kernels;
        for (size_t i = 0; i < rates.kernels.size(); ++i) {
          kernels[py::str(std::string(to_string(rates.kernels[i])))] = series_to_python(rates.series[i]);
        }
        return py::make_tuple(kernels, rates.array_bytes, rates.cache_bytes);
      },
      py::arg("device"), py::arg("seconds"), py::arg("window_seconds"),
      R"(Measures the memory bandwidth of STREAM's loops on the workers of a device, or of all devices for None.

Returns:
    (dict of kernel to series in bytes/s, bytes of an array, bytes of the last-level caches).
)");
  internal.def(
      "measured_scope",
      [](const DeviceOrAll& device) {
        const std::vector<LaneId> lanes = lanes_for(device);
        std::vector<int64_t> numbers;
        for (const LaneId lane : lanes) numbers.push_back(lane.number());
        return std::tuple(numbers, workers_of(lanes), static_cast<int>(all_lanes().size()));
      },
      py::arg("device"),
      "Returns (lanes of the worker pool that a measurement uses, number of workers on them, number of "
      "all lanes).");
  internal.def(
      "last_level_cache_bytes",
      [] {
        current_client();  // gives the workers their lanes
        return last_level_cache_bytes(cpus_of(all_lanes()));
      },
      "Returns the bytes of the last-level caches of all devices' cores, or 0 if the system does not "
      "report them.");
}

}  // namespace artifex_devices::bindings
