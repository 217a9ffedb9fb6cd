// SPDX-License-Identifier: Apache-2.0
#include "bind_training.h"

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/inference/plan.h"
#include "artifex_planner/training/plan.h"
#include "artifex_planner/training/schedule.h"
#include "artifex_planner/training/search.h"
#include "bind_planner.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

std::optional<PipelineSchedule> kind_of(std::string_view name, PipelineSchedule) {
  return pipeline_schedule_from_name(name);
}
std::optional<Recompute> kind_of(std::string_view name, Recompute) { return recompute_from_name(name); }
std::optional<RecomputeMethod> kind_of(std::string_view name, RecomputeMethod) {
  return recompute_method_from_name(name);
}
std::optional<ContextMethod> kind_of(std::string_view name, ContextMethod) { return context_method_from_name(name); }
std::optional<TrainingOptimizer> kind_of(std::string_view name, TrainingOptimizer) {
  return training_optimizer_from_name(name);
}
std::optional<MatmulFormat> kind_of(std::string_view name, MatmulFormat) { return matmul_format_from_name(name); }

/// A number or a bool, or a kind by its name.
template <class T>
T value_from_python(const char* key, py::handle value) {
  if constexpr (std::is_enum_v<T>) {
    const auto name = value.cast<std::string>();
    const std::optional<T> kind = kind_of(name, T{});
    if (!kind) throw_error("TrainingConfig: {} is {:?}; expected one of the documented names; correct it", key, name);
    return *kind;
  } else {
    return value.cast<T>();
  }
}

/// Leaves `to` as it is for None.
template <class T>
void read(const py::dict& from, const char* key, T& to) {
  const py::object value = from[key];
  if (!value.is_none()) to = value_from_python<T>(key, value);
}

template <class T>
void read(const py::dict& from, const char* key, std::vector<T>& to) {
  for (const py::handle value : from[key]) to.push_back(value_from_python<T>(key, value));
}

/// A number for each kind, by its name.
template <class Kind, size_t count>
void read_by_kind(const py::dict& from, const char* key, std::array<double, count>& to) {
  const auto numbers = from[key].cast<py::dict>();
  for (size_t i = 0; i < count; ++i) {
    to[i] = numbers[std::string(to_string(static_cast<Kind>(i))).c_str()].template cast<double>();
  }
}

void read(const py::dict& from, const char* key, TensorNumbers& to) { read_by_kind<TensorKind>(from, key, to); }
void read(const py::dict& from, const char* key, std::array<double, kTrafficCount>& to) {
  read_by_kind<Traffic>(from, key, to);
}

/// Calls `visit(name, field)` with each field of a configuration and its name in Python.
template <class Config, class Visit>
void visit_fields(Config& config, const Visit& visit) {
  visit("tensor", config.tensor);
  visit("context", config.context);
  visit("context_method", config.context_method);
  visit("data", config.data);
  visit("pipeline", config.pipeline);
  visit("expert", config.expert);
  visit("expert_tensor", config.expert_tensor);
  visit("sequence_parallel", config.sequence_parallel);
  visit("schedule", config.schedule);
  visit("chunks", config.chunks);
  visit("zero", config.zero);
  visit("zero_shards", config.zero_shards);
  visit("microbatch", config.microbatch);
  visit("batch", config.batch);
  visit("sequence", config.sequence);
  visit("recompute", config.recompute);
  visit("recompute_method", config.recompute_method);
  visit("recompute_layers", config.recompute_layers);
  visit("optimizer", config.optimizer);
  visit("parameter_bytes", config.parameter_bytes);
  visit("gradient_bytes", config.gradient_bytes);
  visit("activation_bytes", config.activation_bytes);
  visit("dtype", config.format);
  visit("flash_attention", config.flash_attention);
  visit("causal", config.causal);
  visit("dropout", config.dropout);
  visit("offload_optimizer", config.offload_optimizer);
  visit("offload_activations", config.offload_activations);
  visit("expert_imbalance", config.expert_imbalance);
  visit("expert_capacity", config.expert_capacity);
  visit("expert_padding", config.expert_padding);
  visit("sharp", config.sharp);
  visit("overlap", config.overlap);
}

py::dict parts_dict(const TrainingSeconds& seconds) {
  py::dict parts;
  for (int i = 0; i < kTimePartCount; ++i) {
    const auto part = static_cast<TimePart>(i);
    parts[py::str(std::string(to_string(part)))] = seconds[part];
  }
  py::dict hidden;
  for (int i = 0; i < kTrafficCount; ++i) {
    hidden[py::str(std::string(to_string(static_cast<Traffic>(i))))] = seconds.hidden[static_cast<size_t>(i)];
  }
  py::dict result;
  result["parts"] = std::move(parts);
  result["hidden"] = std::move(hidden);
  result["forward"] = seconds.forward;
  result["backward"] = seconds.backward;
  result["total"] = seconds.total();
  return result;
}

py::dict stage_dict(const TrainingStage& stage) {
  py::dict result;
  result["layers"] = stage.layers.total();
  result["parameters_held"] = static_cast<int64_t>(std::llround(stage.parameters));
  for (int i = 0; i < kMemoryPartCount; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    result[py::str(std::string(to_string(part)))] =
        static_cast<int64_t>(std::llround(stage.memory[static_cast<size_t>(i)]));
  }
  result["host"] = static_cast<int64_t>(std::llround(stage.host));
  return result;
}

TrainingSpace space_from_python(const py::dict& from) {
  TrainingSpace space;
  space.base = training_config_from_python(from["base"].cast<py::dict>());
  read(from, "devices", space.devices);
  read(from, "tensor", space.tensor);
  read(from, "context", space.context);
  read(from, "pipeline", space.pipeline);
  read(from, "chunks", space.chunks);
  read(from, "expert", space.expert);
  read(from, "microbatch", space.microbatch);
  read(from, "zero_shards", space.zero_shards);
  read(from, "zero", space.zero);
  read(from, "recompute", space.recompute);
  read(from, "optimizer", space.optimizer);
  for (const auto& [name, overlap] : from["context_method"].cast<std::vector<std::pair<py::str, double>>>()) {
    space.context_method.push_back({value_from_python<ContextMethod>("context_method", name), overlap});
  }
  read(from, "offload_optimizer", space.offload_optimizer);
  read(from, "offload_activations", space.offload_activations);
  read(from, "interleaved_overlap", space.interleaved_overlap);
  read(from, "recompute_parts", space.recompute_parts);
  read(from, "recompute_layers", space.recompute_layers);
  read(from, "memory_limit", space.memory_limit);
  read(from, "host_limit", space.host_limit);
  read(from, "top", space.top);
  return space;
}

py::dict candidate_dict(const TrainingCandidate& candidate) {
  py::dict result;
  visit_fields(candidate.config, [&](const char* name, const auto& value) {
    using Field = std::decay_t<decltype(value)>;
    if constexpr (std::is_enum_v<Field>) {
      result[name] = std::string(to_string(value));
    } else if constexpr (std::is_arithmetic_v<Field>) {
      result[name] = value;
    }
  });
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

py::dict search_training_for(const py::dict& shape, const std::shared_ptr<Cluster>& cluster, const py::dict& space,
                             const py::dict& efficiency, const py::object& progress) {
  const TrainingModel model = training_model(shape_from_python(shape));
  const TrainingSpace parsed = space_from_python(space);
  const Efficiency factors = efficiency_from_python(efficiency);
  const std::function<void(int64_t)> report = progress_report(progress);
  const TrainingSearch found = run_blocking([&] { return search_training(model, *cluster, parsed, factors, report); });
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

py::dict plan_inference_for(const py::dict& shape, const std::shared_ptr<Cluster>& cluster, const py::dict& from,
                            const py::dict& efficiency) {
  InferenceConfig config;
  read(from, "tensor", config.tensor);
  read(from, "pipeline", config.pipeline);
  read(from, "expert", config.expert);
  read(from, "batch", config.batch);
  read(from, "prompt", config.prompt);
  read(from, "output", config.output);
  read(from, "parameter_bytes", config.parameter_bytes);
  read(from, "cache_bytes", config.cache_bytes);
  read(from, "dtype", config.format);
  const TransformerShape sizes = shape_from_python(shape);
  const Efficiency factors = efficiency_from_python(efficiency);
  const InferencePlan plan = run_blocking([&] { return plan_inference(sizes, *cluster, config, factors); });
  const auto bytes = [](double value) { return static_cast<int64_t>(std::llround(value)); };
  py::dict result;
  result["replicas"] = plan.replicas;
  result["parameters"] = bytes(plan.parameters);
  result["cache"] = bytes(plan.cache);
  result["working"] = bytes(plan.working);
  result["available"] = bytes(plan.available);
  result["largest_batch"] = plan.largest_batch;
  result["longest_context"] = plan.longest_context;
  result["roofline"] = inference_seconds_dict(plan, plan.roofline);
  result["expected"] = inference_seconds_dict(plan, plan.expected);
  return result;
}

py::list timeline_list(const std::string& schedule, int64_t microbatches, int64_t chunks, std::vector<double> forward,
                       std::vector<double> backward) {
  const std::optional<PipelineSchedule> kind = pipeline_schedule_from_name(schedule);
  if (!kind) throw_error("pipeline_timeline: schedule is {:?}; expected gpipe, 1f1b or interleaved", schedule);
  py::list result;
  for (const PipelineTask& task :
       pipeline_timeline({*kind, microbatches, chunks, std::move(forward), std::move(backward)})) {
    result.append(py::make_tuple(task.stage, task.microbatch, task.chunk, task.is_backward, task.start, task.end));
  }
  return result;
}

py::dict factors_dict(const Efficiency& efficiency) {
  py::dict result;
  for (int i = 0; i < kFactorCount; ++i) {
    const auto factor = static_cast<Factor>(i);
    const SourcedNumber& number = efficiency.factors[static_cast<size_t>(i)];
    result[py::str(std::string(to_string(factor)))] = py::make_tuple(number.value, number.source);
  }
  return result;
}

}  // namespace

Efficiency efficiency_from_python(const py::dict& from) {
  Efficiency efficiency;
  for (int i = 0; i < kFactorCount; ++i) {
    const std::string name(to_string(static_cast<Factor>(i)));
    const auto [value, source] = from[name.c_str()].cast<std::pair<double, std::string>>();
    efficiency.factors[static_cast<size_t>(i)] = {value, source};
  }
  return efficiency;
}

TrainingConfig training_config_from_python(const py::dict& from) {
  TrainingConfig config;
  visit_fields(config, [&](const char* name, auto& field) { read(from, name, field); });
  return config;
}

py::dict training_plan_dict(const TrainingPlan& plan) {
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
  result["host_memory"] = static_cast<int64_t>(std::llround(plan.host_memory));
  return result;
}

void bind_training(py::module_& module) {
  module.def(
      "default_efficiency",
      [](const std::shared_ptr<Cluster>& cluster) { return factors_dict(default_efficiency(*cluster)); },
      py::arg("cluster"), "(number, source) of each factor of a cluster's chip, by name.");
  module.def(
      "ideal_efficiency", [] { return factors_dict(ideal_efficiency()); },
      "(number, source) of each factor without losses, by name.");
  module.def(
      "efficiency_mistakes",
      [](const py::dict& efficiency) { return efficiency_mistakes(efficiency_from_python(efficiency)); },
      py::arg("efficiency"), "Everything that is wrong with factors; empty if nothing.");
  module.def(
      "plan_training",
      [](const py::dict& shape, const std::shared_ptr<Cluster>& cluster, const py::dict& config,
         const py::dict& efficiency, int64_t devices) {
        const TransformerShape sizes = shape_from_python(shape);
        const TrainingConfig parsed = training_config_from_python(config);
        const Efficiency factors = efficiency_from_python(efficiency);
        return training_plan_dict(
            run_blocking([&] { return plan_training(sizes, *cluster, parsed, factors, devices); }));
      },
      py::arg("shape"), py::arg("cluster"), py::arg("config"), py::arg("efficiency"), py::arg("devices"),
      "Memory and seconds of a training step on the first `devices` of a cluster, as a dict.");
  module.def(
      "training_groups", [](const py::dict& space) { return count_of_groups(space_from_python(space)); },
      py::arg("space"), "The number that `progress` of _search_training counts up to.");
  module.def("search_training", &search_training_for, py::arg("shape"), py::arg("cluster"), py::arg("space"),
             py::arg("efficiency"), py::arg("progress"), "The best configurations of a space, as a dict.");
  module.def(
      "least_memory",
      [](const py::dict& shape, const std::shared_ptr<Cluster>& cluster, const py::dict& space,
         int64_t devices) -> py::object {
        const TrainingModel model = training_model(shape_from_python(shape));
        const TrainingSpace parsed = space_from_python(space);
        const TrainingHardware hardware = training_hardware(*cluster);
        const auto found = run_blocking([&] { return least_memory(model, hardware, parsed, devices); });
        if (!found) return py::none();
        return candidate_dict(*found);
      },
      py::arg("shape"), py::arg("cluster"), py::arg("space"), py::arg("devices"),
      "The configuration on so many devices of such hosts that needs the least of the limits of memory, or None.");
  module.def("plan_inference", &plan_inference_for, py::arg("shape"), py::arg("cluster"), py::arg("config"),
             py::arg("efficiency"), "Memory and seconds of prefill and decoding, as a dict.");
  module.def("pipeline_timeline", &timeline_list, py::arg("schedule"), py::arg("microbatches"), py::arg("chunks"),
             py::arg("forward"), py::arg("backward"),
             "(stage, microbatch, chunk, is_backward, start, end) of each pass of a pipeline.");
}

}  // namespace artifex_devices::planner::bindings
