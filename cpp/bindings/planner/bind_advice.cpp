// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/accelerator_catalogue.h"
#include "artifex_devices/cluster/hardware_type.h"
#include "artifex_planner/advice/batch_size.h"
#include "artifex_planner/advice/derived_batch_size.h"
#include "artifex_planner/advice/roofline.h"
#include "bind_planner.h"

namespace artifex_devices::planner::bindings {
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
      "batch_size_advice",
      [](const std::string& name) {
        const BatchSizeAdvice& advice = batch_size_advice(type_from_name(name));
        return py::make_tuple(advice.min_batch_size, advice.optimal_batch_size, advice.critical_batch_size,
                              advice.max_memory_batch_size, std::string(advice.notes));
      },
      py::arg("hardware_type"),
      R"(Returns (min, optimal, critical, max_memory or None, notes) for a HardwareType's value; batch sizes in examples.

Raises:
    ValueError: `hardware_type` is not a HardwareType's value.
)");
  module.def("max_memory_batch_size", &max_memory_batch_size, py::arg("free_bytes"), py::arg("bytes_per_example"),
             py::arg("model_state_bytes"),
             "Returns the number of examples that fit in memory together with the model state, as a model "
             "estimates it.");
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
      "Returns (is_valid, message) for a batch size on the named hardware with these recommended sizes, "
      "all in examples.");
  module.def(
      "derived_batch_size",
      [](const std::string& hardware) -> py::object {
        const Accelerator* row = accelerator_of(hardware);
        if (row == nullptr) return py::none();
        const DerivedBatchSize sizes = derived_batch_size(*row);
        return py::make_tuple(std::string(row->name), std::string(row->hardware_type), sizes.min_batch_size,
                              sizes.optimal_batch_size, sizes.critical_batch_size, sizes.notes);
      },
      py::arg("hardware"));
  module.def(
      "critical_batch",
      [](double peak_flops, double bandwidth, double weight_bytes) {
        return make_roofline(peak_flops, bandwidth).critical_batch(weight_bytes);
      },
      py::arg("peak_flops"), py::arg("memory_bandwidth"), py::arg("weight_bytes"),
      "Returns the batch size from which arithmetic is the limit, if it is far smaller than the weight "
      "matrix's sides.");
  module.def(
      "exact_critical_batch",
      [](double peak_flops, double bandwidth, int64_t inputs, int64_t outputs, double input_bytes, double weight_bytes,
         double output_bytes) {
        return make_roofline(peak_flops, bandwidth)
            .critical_batch(LayerSizes{inputs, outputs, input_bytes, weight_bytes, output_bytes});
      },
      py::arg("peak_flops"), py::arg("memory_bandwidth"), py::arg("inputs"), py::arg("outputs"), py::arg("input_bytes"),
      py::arg("weight_bytes"), py::arg("output_bytes"),
      "Returns the batch size from which arithmetic is the limit, activations counted; None if memory "
      "always is.");
}

}  // namespace artifex_devices::planner::bindings
