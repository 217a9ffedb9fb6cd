// SPDX-License-Identifier: Apache-2.0
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_planner/inference/plan.h"
#include "artifex_planner/training/fit.h"
#include "artifex_planner/training/messages.h"
#include "artifex_planner/training/plan.h"
#include "artifex_planner/training/schedule.h"
#include "artifex_planner/training/search.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

TrainingSearch search(const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster,
                      const TrainingSpace& space, const Efficiency& efficiency, const py::object& progress) {
  const std::function<void(int64_t)> report = progress_report(progress);
  return run_blocking([&] { return search_training(training_model(shape), *cluster, space, efficiency, report); });
}

std::vector<PipelineTask> timeline(const std::string& schedule, int64_t microbatches, int64_t chunks,
                                   std::vector<double> forward, std::vector<double> backward) {
  const auto kind = kind_named<PipelineSchedule>("pipeline_timeline: schedule", schedule);
  return pipeline_timeline({kind, microbatches, chunks, std::move(forward), std::move(backward)});
}

using StepArguments = std::tuple<TransformerShape, std::shared_ptr<Cluster>, TrainingConfig, double>;

TrainingFit fit_of(const std::vector<StepArguments>& measured, const Efficiency& start) {
  std::vector<MeasuredStep> steps;
  for (const auto& [shape, cluster, config, seconds] : measured) {
    if (cluster == nullptr) throw py::type_error("fit: a plan has no Cluster; expected plans of plan_training");
    steps.push_back({shape, cluster, config, seconds});
  }
  return run_blocking([&] { return fit_training(steps, start); });
}

void bind_shapes(py::module_& module) {
  module.def("shape_problems", &shape_problems, py::arg("shape"),
             "Returns every inconsistency in the sizes of a decoder, as one text each.");
  module.def(
      "shape_parameters",
      [](const TransformerShape& shape) {
        check_shape(shape);
        return shape_parameters(shape);
      },
      py::arg("shape"), "Returns the fields of ShapeParameters, as a dict.");
  module.def(
      "tensor_elements",
      [](const TransformerShape& shape) {
        const LocalParameters parameters = model_parameters(training_model(shape));
        return to_python(by_kind<TensorKind>(parameters.counts));
      },
      py::arg("shape"), "Returns a dict of the number of parameters of each kind of tensor.");
  module.def(
      "cache_elements",
      [](const TransformerShape& shape, int64_t tokens) {
        check_shape(shape);
        return cache_elements(shape, tokens);
      },
      py::arg("shape"), py::arg("tokens"),
      "Returns the number of elements in the KV cache of a sequence of `tokens` tokens.");
}

void bind_efficiency(py::module_& module) {
  module.def(
      "default_efficiency", [](const std::shared_ptr<Cluster>& cluster) { return default_efficiency(*cluster); },
      py::arg("cluster").none(false), "Returns (number, source) of each factor of a cluster's chip, by name.");
  module.def(
      "published_efficiency", [](const std::shared_ptr<Cluster>& cluster) { return published_efficiency(*cluster); },
      py::arg("cluster").none(false),
      "Returns (number, source) of each factor of a cluster's chip, by name, without fits to training runs.");
  module.def("ideal_efficiency", &ideal_efficiency,
             "Returns (number, source) of each factor of ideal hardware without losses, by name.");
  module.def("efficiency_mistakes", &efficiency_mistakes, py::arg("efficiency"),
             "Returns the text of every mistake in factors; empty without mistakes.");
  module.def("fit_training", &fit_of, py::arg("steps"), py::arg("efficiency"),
             R"(Fits factors to measured training steps.

Args:
    steps: (shape, cluster, configuration, measured seconds) of each step.
    efficiency: Factors to start from.

Returns:
    dict of the factors (`efficiency`), the names of the `fitted` ones, and the `predicted` seconds of each step.
)");
  module.def(
      "training_collective_seconds",
      [](const std::string& op, double bytes, const std::shared_ptr<Cluster>& cluster, int64_t devices,
         const Efficiency& efficiency, bool sharp) {
        const auto kind = kind_named<CollectiveOp>("fit: op", op);
        return TrainingLinks(*cluster).seconds(kind, bytes, devices, 1, efficiency, 1, sharp);
      },
      py::arg("op"), py::arg("bytes"), py::arg("cluster").none(false), py::arg("devices"), py::arg("efficiency"),
      py::arg("sharp") = false,
      R"(Returns the seconds that plan_training expects for a collective over the first devices of a cluster.

With `sharp`, switches between nodes may compute the sums.
)");
}

}  // namespace

void bind_training(py::module_& module) {
  bind_shapes(module);
  bind_efficiency(module);
  module.def(
      "plan_training",
      [](const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const TrainingConfig& config,
         const Efficiency& efficiency, int64_t devices) {
        return run_blocking([&] { return plan_training(shape, *cluster, config, efficiency, devices); });
      },
      py::arg("shape"), py::arg("cluster").none(false), py::arg("config"), py::arg("efficiency"), py::arg("devices"),
      "Returns a dict of the memory and seconds of a training step on the first `devices` devices of a "
      "cluster.");
  module.def(
      "training_messages",
      [](const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const TrainingConfig& config,
         const Efficiency& efficiency) {
        return run_blocking([&] { return training_messages(shape, *cluster, config, efficiency); });
      },
      py::arg("shape"), py::arg("cluster").none(false), py::arg("config"), py::arg("efficiency"),
      "Returns a dict of each message of a training step that plan_training has accepted.");
  module.def("training_groups", &count_of_groups, py::arg("space"),
             "Returns the number that `progress` of search_training counts up to.");
  module.def("search_training", &search, py::arg("shape"), py::arg("cluster").none(false), py::arg("space"),
             py::arg("efficiency"), py::arg("progress"),
             R"(Searches a space for the configurations with the shortest steps.

Returns:
    dict of lists of configurations (`options`, `front`, `nearest`), and of the numbers of examined configurations.
)");
  module.def(
      "fits_in_memory",
      [](const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const TrainingSpace& space,
         int64_t devices) {
        const auto least = run_blocking(
            [&] { return least_memory(training_model(shape), training_hardware(*cluster), space, devices); });
        return least && fits(*least, space);
      },
      py::arg("shape"), py::arg("cluster").none(false), py::arg("space"), py::arg("devices"),
      "Returns whether a configuration on `devices` devices of such hosts fits in the limits of a space.");
  module.def(
      "plan_inference",
      [](const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const InferenceConfig& config,
         const Efficiency& efficiency) {
        return run_blocking([&] { return plan_inference(shape, *cluster, config, efficiency); });
      },
      py::arg("shape"), py::arg("cluster").none(false), py::arg("config"), py::arg("efficiency"),
      "Returns a dict of the memory and the seconds of prefill and decoding.");
  module.def("pipeline_timeline", &timeline, py::arg("schedule"), py::arg("microbatches"), py::arg("chunks"),
             py::arg("forward"), py::arg("backward"), "Returns a dict of each pass of a pipeline; times in seconds.");
}

}  // namespace artifex_devices::planner::bindings
