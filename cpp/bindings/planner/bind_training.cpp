// SPDX-License-Identifier: Apache-2.0
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "artifex_planner/inference/plan.h"
#include "artifex_planner/training/fit.h"
#include "artifex_planner/training/plan.h"
#include "artifex_planner/training/schedule.h"
#include "artifex_planner/training/search.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

py::dict parts_dict(const TrainingSeconds& seconds) {
  py::dict result;
  result["parts"] = dict_by_kind<TimePart>(seconds.parts);
  result["hidden"] = dict_by_kind<Traffic>(seconds.hidden);
  result["forward"] = seconds.forward;
  result["backward"] = seconds.backward;
  return result;
}

int64_t whole_bytes(double bytes) { return static_cast<int64_t>(std::llround(bytes)); }

py::dict stage_dict(const TrainingStage& stage) {
  py::dict result;
  result["layers"] = stage.layers.total();
  result["parameters_held"] = static_cast<int64_t>(std::llround(stage.parameters));
  for (size_t i = 0; i < stage.memory.size(); ++i) {
    result[kKindNames<MemoryPart>[i].data()] = whole_bytes(stage.memory[i]);
  }
  result["host"] = whole_bytes(stage.host);
  return result;
}

py::dict plan_dict(const TrainingPlan& plan) {
  py::dict result;
  py::list stages;
  for (const TrainingStage& stage : plan.stages) stages.append(stage_dict(stage));
  result["stages"] = std::move(stages);
  result["roofline"] = parts_dict(plan.roofline);
  result["expected"] = parts_dict(plan.expected);
  result["model_flops"] = plan.model_flops;
  result["executed_flops"] = plan.executed_flops;
  result["peak_flops"] = plan.peak_flops;
  result["available"] = static_cast<int64_t>(plan.available);
  result["bubble_fraction"] = plan.bubble_fraction;
  result["host_memory"] = whole_bytes(plan.host_memory);
  return result;
}

py::dict candidate_dict(const TrainingCandidate& candidate) {
  py::dict result = fields_dict(candidate.config);
  result["seconds"] = candidate.seconds;
  result["memory"] = candidate.memory;
  result["host"] = candidate.host;
  result["devices"] = candidate.config.devices();
  return result;
}

py::list candidates_list(const std::vector<TrainingCandidate>& candidates) {
  py::list result;
  for (const TrainingCandidate& each : candidates) result.append(candidate_dict(each));
  return result;
}

py::dict search_dict(const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const TrainingSpace& space,
                     const Efficiency& efficiency, const py::object& progress) {
  const std::function<void(int64_t)> report = progress_report(progress);
  const TrainingSearch found =
      run_blocking([&] { return search_training(training_model(shape), *cluster, space, efficiency, report); });
  py::dict result;
  result["options"] = candidates_list(found.options);
  result["front"] = candidates_list(found.front);
  result["nearest"] = candidates_list(found.nearest);
  result["combinations"] = found.combinations;
  result["consistent"] = found.consistent;
  result["too_large"] = found.too_large;
  result["skipped"] = found.skipped;
  result["priced"] = found.priced;
  return result;
}

py::dict inference_seconds_dict(const InferencePlan& plan, const InferenceSeconds& seconds) {
  py::dict result;
  result["prefill"] = seconds.prefill;
  result["decode"] = seconds.decode;
  result["last_decode"] = seconds.last_decode;
  result["request"] = seconds.request(plan.config);
  result["tokens_per_second"] = plan.tokens_per_second(seconds);
  return result;
}

py::dict inference_dict(const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster,
                        const InferenceConfig& config, const Efficiency& efficiency) {
  const InferencePlan plan = run_blocking([&] { return plan_inference(shape, *cluster, config, efficiency); });
  py::dict result;
  result["replicas"] = plan.replicas;
  result["parameters"] = whole_bytes(plan.parameters);
  result["cache"] = whole_bytes(plan.cache);
  result["working"] = whole_bytes(plan.working);
  result["available"] = whole_bytes(plan.available);
  result["largest_batch"] = plan.largest_batch;
  result["longest_context"] = plan.longest_context;
  result["roofline"] = inference_seconds_dict(plan, plan.roofline);
  result["expected"] = inference_seconds_dict(plan, plan.expected);
  return result;
}

py::list timeline_list(const std::string& schedule, int64_t microbatches, int64_t chunks, std::vector<double> forward,
                       std::vector<double> backward) {
  const auto kind = kind_named<PipelineSchedule>("pipeline_timeline: schedule", schedule);
  py::list result;
  for (const PipelineTask& task :
       pipeline_timeline({kind, microbatches, chunks, std::move(forward), std::move(backward)})) {
    result.append(py::make_tuple(task.stage, task.microbatch, task.chunk, task.is_backward, task.start, task.end));
  }
  return result;
}

using StepArguments = std::tuple<TransformerShape, std::shared_ptr<Cluster>, TrainingConfig, double>;

py::tuple fit_of(const std::vector<StepArguments>& measured, const Efficiency& start) {
  std::vector<MeasuredStep> steps;
  for (const auto& [shape, cluster, config, seconds] : measured) steps.push_back({shape, cluster, config, seconds});
  const TrainingFit found = run_blocking([&] { return fit_training(steps, start); });
  return py::make_tuple(factors_dict(found.efficiency, found.fitted), found.predicted);
}

/// The arguments of ShapeParameters.
py::dict parameters_dict(const TransformerShape& shape) {
  check_shape(shape);
  const ShapeParameters sums = shape_parameters(shape);
  py::dict result;
  result["total"] = sums.total();
  result["active"] = sums.active;
  result["embedding"] = sums.embedding;
  result["layers"] = sums.layers;
  result["final_norm"] = sums.final_norm;
  result["head"] = sums.head;
  result["prediction"] = sums.prediction;
  result["dense_layers"] = sums.dense_layers;
  result["expert_layers"] = sums.expert_layers;
  result["dense_layer"] = sums.dense_layer;
  result["expert_layer"] = sums.expert_layer;
  return result;
}

void bind_shapes(py::module_& module) {
  module.def("shape_problems", &shape_problems, py::arg("shape"),
             "Returns every inconsistency in the sizes of a decoder, as one text each.");
  module.def("shape_parameters", &parameters_dict, py::arg("shape"),
             "Returns the arguments of ShapeParameters, as a dict.");
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
      py::arg("cluster"), "Returns (number, source) of each factor of a cluster's chip, by name.");
  module.def(
      "published_efficiency", [](const std::shared_ptr<Cluster>& cluster) { return published_efficiency(*cluster); },
      py::arg("cluster"),
      "Returns (number, source) of each factor of a cluster's chip, by name, without fits to training runs.");
  module.def("ideal_efficiency", &ideal_efficiency,
             "Returns (number, source) of each factor of ideal hardware without losses, by name.");
  module.def("efficiency_mistakes", &efficiency_mistakes, py::arg("efficiency"),
             "Returns the text of every mistake in factors; empty if there is none.");
  module.def("fit_training", &fit_of, py::arg("steps"), py::arg("efficiency"),
             R"(Fits factors to measured training steps.

Args:
    steps: (shape, cluster, configuration, measured seconds) of each step.
    efficiency: Factors to start from.

Returns:
    ((number, source) of each fitted factor, by name; seconds of each step with these factors).
)");
  module.def(
      "training_collective_seconds",
      [](const std::string& op, double bytes, const std::shared_ptr<Cluster>& cluster, int64_t devices,
         const Efficiency& efficiency, bool sharp) {
        const auto kind = kind_named<Collective>("fit: op", op);
        return TrainingLinks(*cluster).seconds(kind, bytes, devices, 1, efficiency, sharp);
      },
      py::arg("op"), py::arg("bytes"), py::arg("cluster"), py::arg("devices"), py::arg("efficiency"),
      py::arg("sharp") = false,
      R"(Returns the seconds that plan_training expects for a collective over the first devices of a cluster.

With `sharp`, switches between nodes may compute the sums.
)");
}

}  // namespace

py::dict factors_dict(const Efficiency& efficiency, const std::vector<Factor>& fitted) {
  py::dict result;
  for (const Factor factor : fitted) {
    result[kKindNames<Factor>[static_cast<size_t>(factor)].data()] =
        value_to_python(efficiency.factors[static_cast<size_t>(factor)]);
  }
  return result;
}

void bind_training(py::module_& module) {
  bind_shapes(module);
  bind_efficiency(module);
  module.def(
      "plan_training",
      [](const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const TrainingConfig& config,
         const Efficiency& efficiency, int64_t devices) {
        return plan_dict(run_blocking([&] { return plan_training(shape, *cluster, config, efficiency, devices); }));
      },
      py::arg("shape"), py::arg("cluster"), py::arg("config"), py::arg("efficiency"), py::arg("devices"),
      "Returns a dict of the memory and seconds of a training step on the first `devices` devices of a "
      "cluster.");
  module.def("training_groups", &count_of_groups, py::arg("space"),
             "Returns the number that `progress` of search_training counts up to.");
  module.def("search_training", &search_dict, py::arg("shape"), py::arg("cluster"), py::arg("space"),
             py::arg("efficiency"), py::arg("progress"),
             R"(Searches a space for the configurations with the shortest steps.

Returns:
    dict of lists of configurations (`options`, `front`, `nearest`), and of the numbers of examined configurations.
)");
  module.def(
      "least_memory",
      [](const TransformerShape& shape, const std::shared_ptr<Cluster>& cluster, const TrainingSpace& space,
         int64_t devices) -> py::object {
        const auto found = run_blocking(
            [&] { return least_memory(training_model(shape), training_hardware(*cluster), space, devices); });
        return found ? py::object(candidate_dict(*found)) : py::none();
      },
      py::arg("shape"), py::arg("cluster"), py::arg("space"), py::arg("devices"),
      "Returns the configuration on `devices` devices that needs the smallest fraction of its memory, as "
      "a dict, or None.");
  module.def("plan_inference", &inference_dict, py::arg("shape"), py::arg("cluster"), py::arg("config"),
             py::arg("efficiency"), "Returns a dict of the memory and the seconds of prefill and decoding.");
  module.def("pipeline_timeline", &timeline_list, py::arg("schedule"), py::arg("microbatches"), py::arg("chunks"),
             py::arg("forward"), py::arg("backward"),
             "Returns (stage, microbatch, chunk, is_backward, start, end) of each pass of a pipeline; times in "
             "seconds.");
}

}  // namespace artifex_devices::planner::bindings
