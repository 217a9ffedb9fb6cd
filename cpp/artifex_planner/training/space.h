// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "artifex_planner/fields.h"
#include "artifex_planner/training/config.h"

namespace artifex_devices::planner {

/// A context method, and how much of its communication computation may hide.
struct ContextChoice {
  ContextMethod method = ContextMethod::kRing;
  double overlap = 1;
};

/// The choices that a search combines. Every combination that is consistent is considered.
struct TrainingSpace {
  TrainingConfig base;           // batch, sequence and all that is not chosen
  std::vector<int64_t> devices;  // numbers of devices: the first ids of the cluster
  std::vector<int64_t> tensor, context, pipeline, chunks, expert, microbatch, zero_shards;
  std::vector<ContextChoice> context_method;  // where context is above 1
  std::vector<int> zero;
  std::vector<TrainingOptimizer> optimizer;
  std::vector<Recompute> recompute;
  std::vector<double> recompute_parts;    // of a stage's layers, for full recomputation: 1 is all
  std::vector<int64_t> recompute_layers;  // instead of the parts, where there are any
  std::vector<bool> offload_optimizer, offload_activations;
  double interleaved_overlap = 1;  // of the pipeline, where stages have several chunks
  double memory_limit = 0;         // bytes of a device
  double host_limit = 0;           // bytes of a host; 0: not limited
  size_t top = 5;
};
void visit_fields(FieldsOf<TrainingSpace> auto& space, const auto& visit) {
  visit("base", space.base);
  visit("devices", space.devices);
  visit("tensor", space.tensor);
  visit("context", space.context);
  visit("pipeline", space.pipeline);
  visit("chunks", space.chunks);
  visit("expert", space.expert);
  visit("microbatch", space.microbatch);
  visit("zero_shards", space.zero_shards);
  visit("context_method", space.context_method);
  visit("zero", space.zero);
  visit("optimizer", space.optimizer);
  visit("recompute", space.recompute);
  visit("recompute_parts", space.recompute_parts);
  visit("recompute_layers", space.recompute_layers);
  visit("offload_optimizer", space.offload_optimizer);
  visit("offload_activations", space.offload_activations);
  visit("interleaved_overlap", space.interleaved_overlap);
  visit("memory_limit", space.memory_limit);
  visit("host_limit", space.host_limit);
  visit("top", space.top);
}

/// Throws InvalidArgument for choices that no configuration may have, all of them in one text.
void check_space(const TrainingSpace& space);

/// Number of combinations of pipelines, tensor and context ways.
int64_t count_of_groups(const TrainingSpace& space) noexcept;

/// Calls `visit(group, devices)` for each of these; `group` has `data` where they divide the devices, else 0.
void visit_groups(const TrainingSpace& space, const std::function<void(const TrainingConfig&, int64_t)>& visit);

/// Number of combinations of a group, consistent or not.
int64_t combinations_of_group(const TrainingSpace& space, const TrainingConfig& group) noexcept;

/// Calls `visit` for each consistent combination of a group except optimizer, ZeRO and offloading. Those that share a
/// stage's seconds follow each other.
void visit_group(const TransformerShape& shape, const TrainingSpace& space, const TrainingConfig& group,
                 const std::function<void(const TrainingConfig&)>& visit);

/// Optimizer and ZeRO, for a combination of visit_group().
struct StateChoice {
  TrainingOptimizer optimizer = TrainingOptimizer::kAdamMaster;
  int zero = 0;
  int64_t zero_shards = 0;
};
void state_choices(const TrainingSpace& space, const TrainingConfig& config, std::vector<StateChoice>& into);

/// Kinds of data that are offloaded to host memory; fewer kinds first.
struct OffloadChoice {
  bool optimizer = false;
  bool activations = false;
  /// Whether `other` offloads everything that this choice offloads.
  bool is_part_of(const OffloadChoice& other) const noexcept {
    return (!optimizer || other.optimizer) && (!activations || other.activations);
  }
};
std::vector<OffloadChoice> offload_choices(const TrainingSpace& space);

}  // namespace artifex_devices::planner
