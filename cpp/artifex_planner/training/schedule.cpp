// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/schedule.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {
namespace {

constexpr int64_t kMostTasks = int64_t{1} << 20;

struct Pass {
  int64_t microbatch = 0;
  int64_t chunk = 0;
  bool is_backward = false;
};

/// The k-th forward or backward pass of a stage: groups of as many microbatches as stages take turns in the chunks.
Pass pass_at(const PipelineShape& shape, int64_t k, bool is_backward) {
  const auto stages = static_cast<int64_t>(shape.forward.size());
  if (shape.chunks == 1) return {k, 0, is_backward};
  const int64_t group = stages * shape.chunks;
  const int64_t chunk = k % group / stages;
  return {k / group * stages + k % stages, is_backward ? shape.chunks - 1 - chunk : chunk, is_backward};
}

std::vector<Pass> order_of(const PipelineShape& shape, int64_t stage) {
  const auto stages = static_cast<int64_t>(shape.forward.size());
  const int64_t all = shape.microbatches * shape.chunks;
  int64_t first = all;  // forward passes before the first backward one
  if (shape.schedule == PipelineSchedule::kOneForwardOneBackward) first = std::min(all, stages - 1 - stage);
  if (shape.schedule == PipelineSchedule::kInterleaved) {
    first = std::min(all, 2 * (stages - 1 - stage) + (shape.chunks - 1) * stages);
  }
  std::vector<Pass> order;
  for (int64_t k = 0; k < first; ++k) order.push_back(pass_at(shape, k, false));
  for (int64_t k = first; k < all; ++k) {
    order.push_back(pass_at(shape, k, false));
    order.push_back(pass_at(shape, k - first, true));
  }
  for (int64_t k = all - first; k < all; ++k) order.push_back(pass_at(shape, k, true));
  return order;
}

/// End times of passes; below 0 where a pass has not run.
class EndTimes {
 public:
  explicit EndTimes(const PipelineShape& shape)
      : shape_(shape),
        stages_(static_cast<int64_t>(shape.forward.size())),
        ends_(static_cast<size_t>(2 * stages_ * shape.chunks * shape.microbatches), -1) {}

  double& at(int64_t stage, const Pass& pass) {
    const int64_t place = (stage * shape_.chunks + pass.chunk) * shape_.microbatches + pass.microbatch;
    return ends_[static_cast<size_t>(2 * place + (pass.is_backward ? 1 : 0))];
  }

  /// Time at which the input of a pass arrives, or below 0 if it is not known yet.
  double input(int64_t stage, const Pass& pass) {
    Pass before = pass;
    if (!pass.is_backward) {
      if (stage > 0) return at(stage - 1, before);
      if (pass.chunk == 0) return 0;
      --before.chunk;
      return at(stages_ - 1, before);
    }
    if (stage < stages_ - 1) return at(stage + 1, before);
    if (pass.chunk < shape_.chunks - 1) {
      ++before.chunk;
      return at(0, before);
    }
    before.is_backward = false;
    return at(stage, before);
  }

 private:
  const PipelineShape& shape_;
  int64_t stages_;
  std::vector<double> ends_;
};

void check_pipeline(const PipelineShape& shape) {
  const auto stages = static_cast<int64_t>(shape.forward.size());
  const bool is_positive = std::ranges::all_of(shape.forward, [](double s) { return s > 0; }) &&
                           std::ranges::all_of(shape.backward, [](double s) { return s > 0; });
  if (stages < 1 || shape.backward.size() != shape.forward.size() || !is_positive || shape.microbatches < 1 ||
      shape.chunks < 1) {
    throw_error(
        "pipeline_timeline: {} stages with {} backward times, {} microbatches and {} chunks; expected 1 or more, and "
        "seconds above 0 for each stage",
        stages, shape.backward.size(), shape.microbatches, shape.chunks);
  }
  if (shape.chunks > 1 && shape.microbatches % stages != 0) {
    throw_error(
        "pipeline_timeline: {} microbatches are interleaved over {} stages; expected a multiple of the stages; change "
        "the batch",
        shape.microbatches, stages);
  }
  if (shape.microbatches > kMostTasks / (2 * stages * shape.chunks)) {
    throw_error("pipeline_timeline: {} stages, {} chunks and {} microbatches; expected at most 2**20 passes", stages,
                shape.chunks, shape.microbatches);
  }
}

}  // namespace

std::vector<PipelineTask> pipeline_timeline(const PipelineShape& shape) {
  check_pipeline(shape);
  const size_t stages = shape.forward.size();
  std::vector<std::vector<Pass>> orders;
  for (size_t i = 0; i < stages; ++i) orders.push_back(order_of(shape, static_cast<int64_t>(i)));
  std::vector<size_t> next(stages, 0);
  std::vector<double> free(stages, 0);
  EndTimes ends(shape);
  std::vector<PipelineTask> tasks;
  for (bool has_run = true; has_run;) {
    has_run = false;
    for (size_t i = 0; i < stages; ++i) {
      const auto stage = static_cast<int64_t>(i);
      for (; next[i] < orders[i].size(); ++next[i]) {
        const Pass& pass = orders[i][next[i]];
        const double input = ends.input(stage, pass);
        if (input < 0) break;
        const double start = std::max(input, free[i]);
        free[i] = start + (pass.is_backward ? shape.backward : shape.forward)[i] / to_real(shape.chunks);
        ends.at(stage, pass) = free[i];
        tasks.push_back({stage, pass.microbatch, pass.chunk, pass.is_backward, start, free[i]});
        has_run = true;
      }
    }
  }
  return tasks;
}

}  // namespace artifex_devices::planner
