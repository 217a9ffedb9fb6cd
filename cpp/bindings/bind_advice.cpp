// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/advice/batch_size.h"
#include "artifex_devices/advice/hardware_type.h"
#include "artifex_devices/base/throw_error.h"
#include "bindings.h"

namespace artifex_devices::bindings {
namespace {

HardwareType type_from_name(const std::string& name) {
  const auto type = hardware_type_from_name(name);
  if (!type)
    throw_error("batch_size_advice: {:?} is not a hardware type; expected a HardwareType's value such as 'h100'", name);
  return *type;
}

}  // namespace

void bind_advice(py::module_& module) {
  module.def(
      "detect_hardware_type",
      [](const std::string& platform, const std::string& device_kind) {
        return std::string(to_string(detect_hardware_type(platform, device_kind)));
      },
      py::arg("platform"), py::arg("device_kind"),
      "HardwareType value of a device's platform and kind; \"unknown\" for chips that are not in the table.");
  module.def(
      "batch_size_advice",
      [](const std::string& name) {
        const BatchSizeAdvice& advice = batch_size_advice(type_from_name(name));
        return py::make_tuple(advice.min_batch_size, advice.optimal_batch_size, advice.critical_batch_size,
                              advice.max_memory_batch_size, std::string(advice.notes));
      },
      py::arg("hardware_type"),
      "(min, optimal, critical, max_memory or None, notes) of the table; batch sizes in examples.");
  module.def("max_memory_batch_size", &max_memory_batch_size, py::arg("free_bytes"), py::arg("bytes_per_example"),
             py::arg("model_state_bytes"),
             "Number of examples that fit in memory beside the model state. A model, not a measurement.");
  module.def(
      "validate_batch_size",
      [](int64_t batch_size, const std::string& hardware, int64_t least, int64_t optimal, int64_t critical,
         bool warn_suboptimal) {
        const BatchSizeAdvice advice = {.min_batch_size = least,
                                        .optimal_batch_size = optimal,
                                        .critical_batch_size = critical,
                                        .max_memory_batch_size = std::nullopt,
                                        .notes = {}};
        const BatchSizeVerdict verdict = validate_batch_size(batch_size, advice, hardware, warn_suboptimal);
        return py::make_tuple(verdict.is_valid, verdict.message);
      },
      py::arg("batch_size"), py::arg("hardware"), py::arg("min_batch_size"), py::arg("optimal_batch_size"),
      py::arg("critical_batch_size"), py::arg("warn_suboptimal"),
      "(is_valid, message) for a batch size on hardware of this name with these recommended sizes, all in examples.");
}

}  // namespace artifex_devices::bindings
