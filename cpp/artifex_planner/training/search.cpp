// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/search.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/model.h"
#include "artifex_planner/training/reserved.h"
#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

namespace {

constexpr size_t kNearest = 3;
constexpr double kSameSeconds = 0.01;  // see number_rows()
constexpr double kSameMemory = 0.02;
constexpr double kRounding = 1 - 1e-12;  // of a bound that is summed in another order

/// The memory of a combination's fullest stage and host, with any optimizer, ZeRO and offloading.
class FullestStage {
 public:
  FullestStage(const TrainingModel& model, const TrainingHardware& hardware) : model_(model), hardware_(hardware) {}
  void set(const TrainingConfig& config) {
    const std::vector<StageLayers> stages = layers_of_stages(model_, config);
    holds_.clear();
    for (size_t i = 0; i < stages.size(); ++i) {
      holds_.push_back(stage_holds(model_, config, stages[i], static_cast<int64_t>(i)));
    }
  }
  TrainingCandidate candidate(const TrainingConfig& config) {
    int64_t memory = 0;
    for (const StageHolds& each : holds_) memory = std::max(memory, total(stage_memory(each, config)));
    return {config, 0, memory, needed_bytes(memory, config, hardware_), host(config)};
  }

 private:
  int64_t host(const TrainingConfig& config) {
    if (!config.offload_optimizer && !config.offload_activations) return 0;
    on_hosts_.clear();
    for (const StageHolds& each : holds_) on_hosts_.push_back(offloaded_bytes(each, config));
    return fullest_host(on_hosts_, config, hardware_);
  }

  const TrainingModel& model_;
  const TrainingHardware& hardware_;
  std::vector<double> on_hosts_;
  std::vector<StageHolds> holds_;
};

TrainingConfig with(TrainingConfig config, const StateChoice& states, const OffloadChoice& offload) {
  config.optimizer = states.optimizer;
  config.zero = states.zero;
  config.zero_shards = states.zero_shards;
  config.offload_optimizer = offload.optimizer;
  config.offload_activations = offload.activations;
  return config;
}

/// Fraction of its limits that a candidate needs: above 1 it does not fit. Bytes where devices have no limit.
double fullness(const TrainingCandidate& candidate, const TrainingSpace& space) {
  const double memory = to_real(candidate.needed);
  const double device = space.memory_limit > 0 ? memory / space.memory_limit : memory;
  return space.host_limit > 0 ? std::max(device, to_real(candidate.host) / space.host_limit) : device;
}

/// Whether two candidates share a row.
bool share_row(const TrainingCandidate& a, const TrainingCandidate& b) {
  const auto is_near = [](double x, double y, double part) { return std::abs(x - y) <= part * std::max(x, y); };
  return a.config.devices() == b.config.devices() && a.config.optimizer == b.config.optimizer &&
         is_near(a.seconds, b.seconds, kSameSeconds) && is_near(to_real(a.memory), to_real(b.memory), kSameMemory) &&
         is_near(to_real(a.host), to_real(b.host), kSameMemory);
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
        pricer_(model, hardware_, links_, efficiency),
        fullest_(model, hardware_),
        offloads_(offload_choices(space)),
        flops_(model_flops(model, to_real(space.base.batch), to_real(space.base.sequence))) {
    const bool offloads =
        std::ranges::any_of(offloads_, [](const OffloadChoice& each) { return each.optimizer || each.activations; });
    if (offloads && hardware_.host_bandwidth <= 0) {
      throw_error<Unavailable>(
          "suggest: the bandwidth between host and chip of {} is not known; expected it for offloading; give "
          "the cluster's chip a host_bandwidth",
          cluster.name());
    }
    if (space.base.sharp && !may_have_sharp(cluster)) {
      throw_error(
          "suggest: sharp is true and {} is a torus; expected nodes of GPUs, which InfiniBand may join; leave it "
          "out",
          cluster.name());
    }
    const TransformerShape& shape = model.shape;
    const double s = to_real(space.base.sequence);
    const double attention = 6 * to_real(shape.layers * shape.heads) * (to_real(shape.head_dim) + model.value_dim) * s;
    flops_ -= to_real(space.base.batch) * s * attention;  // masked scores may be skipped
  }

  TrainingSearch search(const std::function<void(int64_t)>& report) {
    int64_t done = 0;
    visit_groups(space_, [&](const TrainingConfig& group, int64_t /*devices*/) {
      check_interrupt();
      if (report) report(done);
      ++done;
      if (!has_links(group)) return;
      found_.combinations += combinations_of_group(space_, group);
      visit_group(model_.shape, space_, group, [&](const TrainingConfig& config) { consider(config); });
    });
    std::ranges::sort(found_.front, {}, &TrainingCandidate::seconds);
    number_rows(found_.options);
    if (!found_.options.empty()) found_.nearest.clear();
    return std::move(found_);
  }

 private:
  /// Whether ranks of each axis are boxes of the cluster.
  bool has_links(const TrainingConfig& config) {
    if (config.data == 0) return true;  // counted as inconsistent
    const auto is_box = [&](int64_t size, int64_t stride) {
      return size == 1 || links_.group(size, stride) != nullptr;
    };
    return is_box(config.tensor, 1) && is_box(config.context, config.tensor) &&
           is_box(config.context * config.data, config.tensor) &&
           (config.pipeline == 1 || is_box(2, config.tensor * config.context * config.data));
  }

  double flops_bound(const TrainingConfig& config) const {
    const double peak = hardware_.device.peak_flops[static_cast<size_t>(config.format)].value_or(0) *
                        efficiency_[matmul_factor(config.format)];
    if (peak <= 0) return 0;
    const double bubble = to_real(config.pipeline - 1) / to_real(config.chunks * config.microbatches());
    return flops_ / (peak * to_real(config.devices())) * (1 + bubble);
  }

  /// Considers a combination with each optimizer, ZeRO and offloading.
  void consider(const TrainingConfig& config) {
    fullest_.set(config);
    state_choices(space_, config, states_);
    candidates_.clear();
    for (const StateChoice& states : states_) {
      fitting_.clear();
      for (const OffloadChoice& offload : offloads_) add_candidate(with(config, states, offload), offload);
    }
    skip_beaten(flops_bound(config));
    if (candidates_.empty()) return;
    try {
      skip_beaten(pricer_.least_seconds(config) * kRounding);
    } catch (const InvalidArgument&) {  // ranks of the experts are not a box
      found_.consistent -= static_cast<int64_t>(candidates_.size());
      return;
    }
    for (const TrainingCandidate& each : candidates_) price(each);
  }

  void add_candidate(const TrainingConfig& config, const OffloadChoice& offload) {
    ++found_.consistent;
    if (std::ranges::any_of(fitting_, [&](const OffloadChoice& each) { return each.is_part_of(offload); })) {
      ++found_.skipped;
      return;
    }
    const TrainingCandidate candidate = fullest_.candidate(config);
    if (!fits(candidate, space_)) {
      ++found_.too_large;
      if (found_.options.empty()) add_nearest(candidate);
      return;
    }
    fitting_.push_back(offload);
    candidates_.push_back(candidate);
  }

  /// Skips candidates that the found options beat even if the candidates take only `seconds`.
  void skip_beaten(double seconds) {
    if (found_.options.size() < space_.top || seconds < found_.options.back().seconds) return;
    found_.skipped += static_cast<int64_t>(std::erase_if(candidates_, [&](TrainingCandidate& each) {
      each.seconds = seconds;
      return is_dominated(each);
    }));
  }

  void price(TrainingCandidate candidate) {
    try {
      candidate.seconds = pricer_.seconds(candidate.config).total();
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
      return std::tie(a.seconds, a.memory) < std::tie(b.seconds, b.memory);
    });
    found_.options.insert(place, candidate);
    if (found_.options.size() > space_.top) found_.options.pop_back();
  }

  void add_nearest(const TrainingCandidate& candidate) {
    const auto own = [&](const TrainingCandidate& each) { return fullness(each, space_); };
    const auto place = std::ranges::upper_bound(found_.nearest, own(candidate), {}, own);
    found_.nearest.insert(place, candidate);
    if (found_.nearest.size() > kNearest) found_.nearest.pop_back();
  }

  const TrainingModel& model_;
  const TrainingSpace& space_;
  const Efficiency& efficiency_;
  TrainingHardware hardware_;
  TrainingLinks links_;
  StepPricer pricer_;
  FullestStage fullest_;
  std::vector<OffloadChoice> offloads_;
  double flops_;
  std::vector<StateChoice> states_;
  std::vector<OffloadChoice> fitting_;         // choices with which the current states fit
  std::vector<TrainingCandidate> candidates_;  // that fit
  TrainingSearch found_;
};

}  // namespace

bool fits(const TrainingCandidate& candidate, const TrainingSpace& space) noexcept {
  return to_real(candidate.needed) <= space.memory_limit &&
         (space.host_limit <= 0 || to_real(candidate.host) <= space.host_limit);
}

void number_rows(std::vector<TrainingCandidate>& candidates) {
  std::vector<const TrainingCandidate*> rows;  // the first candidate of each
  for (TrainingCandidate& each : candidates) {
    const auto shares = [&](const TrainingCandidate* first) { return share_row(*first, each); };
    const auto row = std::ranges::find_if(rows, shares);
    each.row = row - rows.begin();
    if (row == rows.end()) rows.push_back(&each);
  }
}

TrainingSearch search_training(const TrainingModel& model, const Cluster& cluster, const TrainingSpace& space,
                               const Efficiency& efficiency, const std::function<void(int64_t)>& report) {
  check_space(space);
  const std::string factors = efficiency_mistakes(efficiency);
  if (!factors.empty()) throw_error("suggest: {}; correct the factors", factors);
  return Searcher(model, cluster, space, efficiency).search(report);
}

std::optional<TrainingCandidate> least_memory(const TrainingModel& model, const TrainingHardware& hardware,
                                              const TrainingSpace& space, int64_t devices) {
  TrainingSpace wider = space;
  wider.devices = {devices};
  check_space(wider);
  std::optional<TrainingCandidate> least;
  FullestStage fullest(model, hardware);
  std::vector<StateChoice> all_states;
  const std::vector<OffloadChoice> offloads = offload_choices(wider);
  visit_groups(wider, [&](const TrainingConfig& group, int64_t /*devices*/) {
    check_interrupt();
    visit_group(model.shape, wider, group, [&](const TrainingConfig& config) {
      fullest.set(config);
      state_choices(wider, config, all_states);
      for (const StateChoice& states : all_states) {
        for (const OffloadChoice& offload : offloads) {
          const TrainingCandidate found = fullest.candidate(with(config, states, offload));
          if (!least || fullness(found, space) < fullness(*least, space)) least = found;
        }
      }
    });
  });
  return least;
}

}  // namespace artifex_devices::planner
