// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_planner/training/config.h"

namespace artifex_devices::planner {

/// One pass of one microbatch through one chunk of a stage.
struct PipelineTask {
  int64_t stage = 0;
  int64_t microbatch = 0;
  int64_t chunk = 0;
  bool is_backward = false;
  double start = 0;
  double end = 0;
};
void visit_fields(FieldsOf<PipelineTask> auto& task, const auto& visit) {
  visit("stage", task.stage);
  visit("microbatch", task.microbatch);
  visit("chunk", task.chunk);
  visit("is_backward", task.is_backward);
  visit("start", task.start);
  visit("end", task.end);
}

/// Shape of a pipeline. `forward` and `backward` are seconds of all chunks of each stage for one microbatch.
struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  int64_t microbatches = 1;
  int64_t chunks = 1;
  std::vector<double> forward;
  std::vector<double> backward;
};

/// Runs a pipeline by its schedule: each stage does its passes in the schedule's order (Narayanan et al. 2021,
/// arXiv:2104.04473), each as soon as its input has arrived. Messages take no time. Throws InvalidArgument for stages
/// without seconds, for an interleaved schedule whose microbatches are not a multiple of the stages, and for more than
/// 2^20 passes. Example: 4 equal stages and 8 microbatches of 3 s finish after 33 s: 24 s of work and a bubble of 3/8.
std::vector<PipelineTask> pipeline_timeline(const PipelineShape& shape);

}  // namespace artifex_devices::planner
