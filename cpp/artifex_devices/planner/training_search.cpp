// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/training_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/planner/training_real.h"

namespace artifex_devices {
namespace {

constexpr size_t kNearest = 3;

/// Throws InvalidArgument for choices that no configuration may have, all of them in one text.
void check_space(const TrainingSpace& space) {
  std::vector<std::string> wrong;
  const auto check = [&](std::string_view name, const auto& values, int64_t least, int64_t most) {
    if (values.empty()) wrong.push_back(fmt::format("{} has no choices, expected 1 or more", name));
    for (const int64_t value : values) {
      if (value < least || value > most) {
        wrong.push_back(fmt::format("{} has {}, expected {} to {}", name, value, least, most));
      }
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
  if (space.recompute.empty()) wrong.emplace_back("recompute has no choices, expected 1 or more");
  for (const double part : space.recompute_parts) {
    if (!(part > 0 && part <= 1)) {
      wrong.push_back(fmt::format("recompute_parts has {}, expected above 0, at most 1", part));
    }
  }
  if (space.top < 1) wrong.push_back(fmt::format("top is {}, expected 1 or more", space.top));
  if (!wrong.empty()) throw_error("suggest_training: {}; correct the choices", fmt::join(wrong, "; "));
}

/// The same, and for factors outside their ranges.
void check_search(const TrainingSpace& space, const Efficiency& efficiency) {
  check_space(space);
  const std::string factors = efficiency_mistakes(efficiency);
  if (!factors.empty()) throw_error("suggest_training: {}; correct the factors", factors);
}

double memory_of(const TrainingModel& model, const TrainingConfig& config) {
  const std::vector<StageLayers> stages = layers_of_stages(model, config);
  double most = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    most = std::max(most, total(stage_memory(model, config, stages[i], static_cast<int64_t>(i))));
  }
  return most;
}

/// The ways of data that tensor, context and pipeline leave of so many devices; 0 where they do not divide them.
int64_t data_ways(const TrainingConfig& config, int64_t devices) {
  for (const int64_t ways : {config.tensor, config.context, config.pipeline}) {
    if (devices % ways != 0) return 0;
    devices /= ways;
  }
  return devices;
}

/// Calls `visit(config)` for each consistent combination that shares tensor, context and pipeline on so many devices.
template <class Visit>
void visit_group(const TrainingModel& model, const TrainingSpace& space, TrainingConfig config, int64_t devices,
                 TrainingSearch& counts, Visit visit) {
  const auto inner = static_cast<int64_t>(space.chunks.size() * space.expert.size() * space.microbatch.size() *
                                          space.zero_shards.size() * space.zero.size() * space.recompute.size());
  counts.combinations += inner;
  config.data = data_ways(config, devices);
  if (config.data == 0) return;
  config.sequence_parallel = config.tensor > 1 && config.sequence % (config.tensor * config.context) == 0;
  const int64_t stage = (model.shape.layers + config.pipeline - 1) / config.pipeline;
  const auto recomputed = [&] {
    for (const Recompute recompute : space.recompute) {
      config.recompute = recompute;
      config.recompute_layers = -1;
      if (recompute != Recompute::kFull) {
        visit(config);
        continue;
      }
      for (const double part : space.recompute_parts) {
        config.recompute_layers = part >= 1 ? -1 : static_cast<int64_t>(std::ceil(part * to_real(stage)));
        if (config.recompute_layers < stage) visit(config);
      }
    }
  };
  for (const int64_t chunks : space.chunks) {
    config.chunks = chunks;
    config.schedule = chunks > 1 ? PipelineSchedule::kInterleaved : space.base.schedule;
    if (chunks == 1 && config.schedule == PipelineSchedule::kInterleaved) {
      config.schedule = PipelineSchedule::kOneForwardOneBackward;
    }
    config.overlap = space.base.overlap;
    if (chunks > 1) config.overlap[static_cast<size_t>(Traffic::kPipeline)] = 1;  // Megatron-LM sends in the background
    for (const int64_t expert : space.expert) {
      config.expert = expert;
      for (const int64_t microbatch : space.microbatch) {
        config.microbatch = microbatch;
        config.zero = 0;
        config.zero_shards = 0;
        config.recompute = Recompute::kNone;
        config.recompute_layers = -1;
        if (!is_consistent(model.shape, config, devices)) continue;
        for (const int zero : space.zero) {
          config.zero = zero;
          for (const int64_t shards : space.zero_shards) {
            if (shards > 0 &&
                (zero == 0 || shards >= config.context * config.data || config.context * config.data % shards != 0)) {
              continue;
            }
            config.zero_shards = shards;
            recomputed();
          }
        }
      }
    }
  }
}

/// Calls `visit(config, devices)` for each group.
template <class Visit>
void visit_groups(const TrainingSpace& space, Visit visit) {
  TrainingConfig config = space.base;
  for (const int64_t devices : space.devices) {
    for (const int64_t tensor : space.tensor) {
      for (const int64_t context : space.context) {
        for (const int64_t pipeline : space.pipeline) {
          config.tensor = tensor;
          config.context = context;
          config.pipeline = pipeline;
          visit(config, devices);
        }
      }
    }
  }
}

/// Whether `a` is at least as good as `b` in all respects.
bool dominates(const TrainingCandidate& a, const TrainingCandidate& b) {
  return a.seconds <= b.seconds && a.memory <= b.memory && a.config.devices() <= b.config.devices();
}

class Searcher {
 public:
  Searcher(const TrainingModel& model, const Cluster& cluster, const TrainingSpace& space, const Efficiency& efficiency)
      : model_(model),
        space_(space),
        efficiency_(efficiency),
        hardware_(training_hardware(cluster)),
        links_(cluster),
        flops_(model_flops(model, to_real(space.base.batch), to_real(space.base.sequence))) {
    const TransformerShape& shape = model.shape;
    const double s = to_real(space.base.sequence);
    const double attention = 6 * to_real(shape.layers * shape.heads) * (to_real(shape.head_dim) + model.value_dim) * s;
    flops_ -= to_real(space.base.batch) * s * attention;  // masked scores may be skipped
  }

  TrainingSearch search(const std::function<void(int64_t)>& report) {
    int64_t done = 0;
    visit_groups(space_, [&](const TrainingConfig& group, int64_t devices) {
      check_interrupt();
      if (report) report(done);
      ++done;
      if (!has_links(group, devices)) return;
      visit_group(model_, space_, group, devices, found_, [&](const TrainingConfig& config) { consider(config); });
    });
    std::ranges::sort(found_.front, {}, &TrainingCandidate::seconds);
    if (!found_.options.empty()) found_.nearest.clear();
    return std::move(found_);
  }

 private:
  /// Whether ranks of each axis are boxes of the cluster.
  bool has_links(const TrainingConfig& config, int64_t devices) {
    const int64_t data = data_ways(config, devices);
    if (data == 0) return true;  // counted as inconsistent
    const auto is_box = [&](int64_t size, int64_t stride) {
      return size == 1 || links_.group(size, stride) != nullptr;
    };
    return is_box(config.tensor, 1) && is_box(config.context, config.tensor) &&
           is_box(config.context * data, config.tensor) &&
           (config.pipeline == 1 || is_box(2, config.tensor * config.context * data));
  }

  double bound(const TrainingConfig& config) const {
    const double fraction =
        efficiency_[config.format == MatmulFormat::kFloat8 ? Factor::kMatmulFloat8 : Factor::kMatmul];
    const double peak = hardware_.device.peak_flops[static_cast<size_t>(config.format)].value_or(0) * fraction;
    if (peak <= 0) return 0;
    const double bubble = to_real(config.pipeline - 1) / to_real(config.chunks * config.microbatches());
    return flops_ / (peak * to_real(config.devices())) * (1 + bubble);
  }

  void consider(const TrainingConfig& config) {
    ++found_.consistent;
    TrainingCandidate candidate{config, 0, memory_of(model_, config)};
    if (candidate.memory > space_.memory_limit) {
      ++found_.too_large;
      if (found_.options.empty()) add_nearest(candidate);
      return;
    }
    candidate.seconds = bound(config);
    const bool is_beaten = found_.options.size() >= space_.top && candidate.seconds >= found_.options.back().seconds &&
                           is_dominated(candidate);
    if (is_beaten) {
      ++found_.skipped;
      return;
    }
    try {
      candidate.seconds = training_seconds(model_, config, hardware_, links_, efficiency_).total();
    } catch (const InvalidArgument&) {  // ranks of the experts are not a box
      --found_.consistent;
      return;
    }
    ++found_.priced;
    add_option(candidate);
    if (is_dominated(candidate)) return;
    std::erase_if(found_.front, [&](const TrainingCandidate& each) { return dominates(candidate, each); });
    found_.front.push_back(candidate);
  }

  bool is_dominated(const TrainingCandidate& candidate) const {
    return std::ranges::any_of(found_.front, [&](const TrainingCandidate& each) { return dominates(each, candidate); });
  }

  void add_option(const TrainingCandidate& candidate) {
    const auto place = std::ranges::upper_bound(found_.options, candidate, [](const auto& a, const auto& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.memory < b.memory;
    });
    found_.options.insert(place, candidate);
    if (found_.options.size() > space_.top) found_.options.pop_back();
  }

  void add_nearest(const TrainingCandidate& candidate) {
    const auto place = std::ranges::upper_bound(found_.nearest, candidate.memory, {}, &TrainingCandidate::memory);
    found_.nearest.insert(place, candidate);
    if (found_.nearest.size() > kNearest) found_.nearest.pop_back();
  }

  const TrainingModel& model_;
  const TrainingSpace& space_;
  const Efficiency& efficiency_;
  TrainingHardware hardware_;
  TrainingLinks links_;
  double flops_;
  TrainingSearch found_;
};

}  // namespace

int64_t count_of_groups(const TrainingSpace& space) noexcept {
  return static_cast<int64_t>(space.devices.size() * space.tensor.size() * space.context.size() *
                              space.pipeline.size());
}

TrainingSearch search_training(const TrainingModel& model, const Cluster& cluster, const TrainingSpace& space,
                               const Efficiency& efficiency, const std::function<void(int64_t)>& report) {
  check_search(space, efficiency);
  return Searcher(model, cluster, space, efficiency).search(report);
}

std::optional<TrainingCandidate> least_memory(const TrainingModel& model, const TrainingSpace& space, int64_t devices) {
  std::optional<TrainingCandidate> least;
  TrainingSearch counts;
  TrainingSpace wider = space;
  wider.devices = {devices};
  check_space(wider);
  visit_groups(wider, [&](const TrainingConfig& group, int64_t /*devices*/) {
    check_interrupt();
    visit_group(model, wider, group, devices, counts, [&](const TrainingConfig& config) {
      const double memory = memory_of(model, config);
      if (!least || memory < least->memory) least = TrainingCandidate{config, 0, memory};
    });
  });
  return least;
}

}  // namespace artifex_devices
