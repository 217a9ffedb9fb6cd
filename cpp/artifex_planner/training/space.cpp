// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

namespace {

/// Number of replicas: the devices divided by tensor, context and pipeline; 0 if they do not divide evenly.
int64_t data_ways(const TrainingConfig& config, int64_t devices) {
  for (const int64_t ways : {config.tensor, config.context, config.pipeline}) {
    if (devices % ways != 0) return 0;
    devices /= ways;
  }
  return devices;
}

/// Calls `visit` for each kind of recomputation.
void visit_recomputed(const TrainingSpace& space, int64_t stage_layers, TrainingConfig& config,
                      const std::function<void(const TrainingConfig&)>& visit) {
  for (const Recompute recompute : space.recompute) {
    config.recompute = recompute;
    config.recompute_layers = -1;
    if (recompute != Recompute::kFull) {
      visit(config);
      continue;
    }
    bool has_all = false;  // several numbers that a stage does not have are one choice
    for (const int64_t layers : space.recompute_layers) {
      const bool is_all = config.recompute_method == RecomputeMethod::kBlock && layers >= stage_layers;
      if (is_all && has_all) continue;
      has_all = has_all || is_all;
      config.recompute_layers = is_all ? -1 : layers;
      visit(config);
    }
    if (!space.recompute_layers.empty()) continue;
    int64_t last = 0;
    for (const double part : space.recompute_parts) {
      config.recompute_layers = part >= 1 ? -1 : static_cast<int64_t>(std::ceil(part * to_real(stage_layers)));
      if (config.recompute_layers < stage_layers && config.recompute_layers != last) visit(config);
      last = config.recompute_layers;
    }
  }
  config.recompute = Recompute::kNone;
  config.recompute_layers = -1;
}

}  // namespace

void check_space(const TrainingSpace& space) {
  std::vector<std::string> wrong;
  const auto check_some = [&](std::string_view name, const auto& values) {
    if (values.empty()) wrong.push_back(fmt::format("{} has no choices, expected 1 or more", name));
  };
  const auto check = [&](std::string_view name, const auto& values, int64_t least, int64_t most) {
    check_some(name, values);
    for (const int64_t value : values) {
      if (value < least || value > most) {
        wrong.push_back(fmt::format("{} has {}, expected {} to {}", name, value, least, most));
      }
    }
  };
  const auto check_part = [&](std::string_view name, double part, bool may_be_0) {
    if (may_be_0 && part == 0) return;
    if (!(part > 0 && part <= 1)) {
      wrong.push_back(fmt::format("{} has {}, expected {}", name, part, may_be_0 ? "0 to 1" : "above 0, at most 1"));
    }
  };
  check("batch", std::array{space.base.batch}, 1, kMostTrainingCount);
  check("sequence", std::array{space.base.sequence}, 1, kMostTrainingCount);
  check("devices", space.devices, 1, kMostTrainingCount);
  check("tensor", space.tensor, 1, kMostTrainingCount);
  check("context", space.context, 1, kMostTrainingCount);
  check("pipeline", space.pipeline, 1, kMostTrainingCount);
  check("chunks", space.chunks, 1, kMostTrainingCount);
  check("expert", space.expert, 1, kMostTrainingCount);
  check("microbatch", space.microbatch, 1, kMostTrainingCount);
  check("zero_shards", space.zero_shards, 0, kMostTrainingCount);
  check("zero", space.zero, 0, 3);
  if (!space.recompute_layers.empty()) check("recompute_layers", space.recompute_layers, 0, kMostTrainingCount);
  check_some("context_method", space.context_method);
  check_some("optimizer", space.optimizer);
  check_some("recompute", space.recompute);
  check_some("offload_optimizer", space.offload_optimizer);
  check_some("offload_activations", space.offload_activations);
  for (const ContextChoice& each : space.context_method) check_part("context_method's overlap", each.overlap, true);
  for (const double part : space.recompute_parts) check_part("recompute_parts", part, false);
  if (space.top < 1) wrong.push_back(fmt::format("top is {}, expected 1 or more", space.top));
  if (!wrong.empty()) throw_error("suggest: {}; correct the choices", fmt::join(wrong, "; "));
}

int64_t count_of_groups(const TrainingSpace& space) noexcept {
  return static_cast<int64_t>(space.devices.size() * space.tensor.size() * space.context.size() *
                              space.pipeline.size());
}

void visit_groups(const TrainingSpace& space, const std::function<void(const TrainingConfig&, int64_t)>& visit) {
  TrainingConfig config = space.base;
  config.zero = 0;
  config.zero_shards = 0;
  config.offload_optimizer = config.offload_activations = false;
  for (const int64_t devices : space.devices) {
    for (const int64_t tensor : space.tensor) {
      for (const int64_t context : space.context) {
        for (const int64_t pipeline : space.pipeline) {
          config.tensor = tensor;
          config.context = context;
          config.pipeline = pipeline;
          config.data = data_ways(config, devices);
          visit(config, devices);
        }
      }
    }
  }
}

int64_t combinations_of_group(const TrainingSpace& space, const TrainingConfig& group) noexcept {
  const size_t methods = group.context > 1 ? space.context_method.size() : 1;
  const auto full = static_cast<size_t>(std::ranges::count(space.recompute, Recompute::kFull));
  const size_t numbers = space.recompute_layers.empty() ? space.recompute_parts.size() : space.recompute_layers.size();
  const size_t recomputed = space.recompute.size() - full + full * numbers;
  return static_cast<int64_t>(methods * space.chunks.size() * space.expert.size() * space.microbatch.size() *
                              recomputed * space.optimizer.size() * space.zero.size() * space.zero_shards.size() *
                              space.offload_optimizer.size() * space.offload_activations.size());
}

void visit_group(const TransformerShape& shape, const TrainingSpace& space, const TrainingConfig& group,
                 const std::function<void(const TrainingConfig&)>& visit) {
  if (group.data == 0) return;
  TrainingConfig config = group;
  config.sequence_parallel = config.tensor > 1 && config.sequence % (config.tensor * config.context) == 0;
  config.recompute = Recompute::kNone;
  config.recompute_layers = -1;
  const int64_t devices = config.devices();
  const int64_t stage = (shape.layers + config.pipeline - 1) / config.pipeline;
  const size_t methods = config.context > 1 ? space.context_method.size() : 1;
  for (size_t i = 0; i < methods; ++i) {
    config.context_method = space.context_method[i].method;
    for (const int64_t expert : space.expert) {
      config.expert = expert;
      for (const int64_t microbatch : space.microbatch) {
        config.microbatch = microbatch;
        for (const int64_t chunks : space.chunks) {
          config.chunks = chunks;
          config.schedule = chunks > 1 ? PipelineSchedule::kInterleaved : space.base.schedule;
          if (chunks == 1 && config.schedule == PipelineSchedule::kInterleaved) {
            config.schedule = PipelineSchedule::kOneForwardOneBackward;
          }
          config.overlap = space.base.overlap;
          config.overlap[static_cast<size_t>(Traffic::kContext)] = space.context_method[i].overlap;
          if (chunks > 1) config.overlap[static_cast<size_t>(Traffic::kPipeline)] = space.interleaved_overlap;
          if (is_consistent(shape, config, devices)) visit_recomputed(space, stage, config, visit);
        }
      }
    }
  }
}

void state_choices(const TrainingSpace& space, const TrainingConfig& config, std::vector<StateChoice>& into) {
  into.clear();
  const int64_t all = config.context * config.data;
  for (const TrainingOptimizer optimizer : space.optimizer) {
    for (const int zero : space.zero) {
      for (const int64_t shards : space.zero_shards) {
        if (shards > 0 && (zero == 0 || shards >= all || all % shards != 0)) continue;
        into.push_back({optimizer, zero, shards});
      }
    }
  }
}

std::vector<OffloadChoice> offload_choices(const TrainingSpace& space) {
  std::vector<OffloadChoice> result;
  for (const bool activations : space.offload_activations) {
    for (const bool optimizer : space.offload_optimizer) result.push_back({optimizer, activations});
  }
  std::ranges::stable_sort(result, {}, [](const OffloadChoice& each) {
    return static_cast<int>(each.optimizer) + static_cast<int>(each.activations);
  });
  return result;
}

}  // namespace artifex_devices::planner
