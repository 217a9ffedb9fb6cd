// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

const TensorNumbers& optimizer_bytes(TrainingOptimizer optimizer) noexcept {
  static constexpr std::array<TensorNumbers, kKindNames<TrainingOptimizer>.size()> kBytes = {
      {every_tensor(0), every_tensor(8), every_tensor(12), {4, 4, 8, 4, 4, 4, 4}, {12, 12, 12, 8, 8, 8, 8}}};
  return kBytes[static_cast<size_t>(optimizer)];
}

namespace {

/// Calls `wrong(text)` for each mistake; texts are built only where `wrong` takes them.
template <class Wrong>
void find_mistakes(const TransformerShape& model, const TrainingConfig& c, int64_t devices, Wrong wrong) {
  const std::array<std::pair<std::string_view, int64_t>, 11> counts = {{{"tensor", c.tensor},
                                                                        {"context", c.context},
                                                                        {"data", c.data},
                                                                        {"pipeline", c.pipeline},
                                                                        {"expert", c.expert},
                                                                        {"expert_tensor", c.expert_tensor},
                                                                        {"chunks", c.chunks},
                                                                        {"microbatch", c.microbatch},
                                                                        {"batch", c.batch},
                                                                        {"sequence", c.sequence},
                                                                        {"loss_chunks", c.loss_chunks}}};
  bool is_counted = true;
  for (const auto& [name, value] : counts) {
    if (value >= 1 && value <= kMostTrainingCount) continue;
    wrong([&] { return fmt::format("{} is {}, expected 1 to {}", name, value, kMostTrainingCount); });
    is_counted = false;
  }
  if (!is_counted) return;
  const double product = to_real(c.tensor) * to_real(c.context) * to_real(c.data) * to_real(c.pipeline);
  if (product != to_real(devices)) {
    wrong([&] {
      return fmt::format("tensor {} x context {} x data {} x pipeline {} are {:.0f} devices, expected {}", c.tensor,
                         c.context, c.data, c.pipeline, product, devices);
    });
    if (product > to_real(kMostTrainingCount)) return;  // products below would not be int64
  }
  const auto divides = [&](std::string_view name, int64_t value, std::string_view whole_name, int64_t whole) {
    if (whole % value == 0) return;
    wrong([&] { return fmt::format("{} is {}, expected a divisor of {} {}", name, value, whole_name, whole); });
  };
  divides("tensor", c.tensor, "the number of heads,", model.heads);
  if (c.tensor > model.kv_heads && model.kv_lora_rank == 0 && c.tensor % model.kv_heads != 0) {
    wrong([&] {
      return fmt::format("tensor is {}, expected a multiple of the {} heads of keys and values", c.tensor,
                         model.kv_heads);
    });
  }
  const int64_t parts = c.context * (c.context_method == ContextMethod::kRing && c.causal && c.context > 1 ? 2 : 1);
  divides("context x 2 (both ends of a causal ring), or context,", parts, "the sequence,", c.sequence);
  if (c.sequence_parallel) divides("tensor x context", c.tensor * c.context, "the sequence,", c.sequence);
  if (c.context_method == ContextMethod::kAllToAll) {
    divides("tensor x context", c.tensor * c.context, "the number of heads,", model.heads);
  }
  divides("data x microbatch", c.data * c.microbatch, "the batch,", c.batch);
  if (c.pipeline * c.chunks > model.layers + 2) {
    wrong([&] {
      return fmt::format(
          "pipeline {} x chunks {} are {} stages, expected at most {} for {} layers, embedding and output", c.pipeline,
          c.chunks, c.pipeline * c.chunks, model.layers + 2, model.layers);
    });
  }
  const bool is_interleaved = c.schedule == PipelineSchedule::kInterleaved;
  if (c.chunks > 1 && !is_interleaved) {
    wrong([&] {
      return fmt::format("chunks is {} with schedule {:?}, expected 1, or schedule=\"interleaved\"", c.chunks,
                         to_string(c.schedule));
    });
  }
  if (is_interleaved && (c.chunks < 2 || c.pipeline < 2)) {
    wrong([&] {
      return fmt::format("schedule is \"interleaved\" with chunks {} and pipeline {}, expected 2 or more of each",
                         c.chunks, c.pipeline);
    });
  }
  if (is_interleaved && c.pipeline >= 2 && c.microbatches() % c.pipeline != 0) {
    wrong([&] {
      return fmt::format("{} microbatches are interleaved over {} stages, expected a multiple of the stages",
                         c.microbatches(), c.pipeline);
    });
  }
  if (c.zero < 0 || c.zero > 3) wrong([&] { return fmt::format("zero is {}, expected 0, 1, 2 or 3", c.zero); });
  if (c.zero_shards < 0 || (c.zero_shards > 0 && (c.context * c.data) % c.zero_shards != 0)) {
    wrong([&] {
      return fmt::format("zero_shards is {}, expected a divisor of context x data, {}", c.zero_shards,
                         c.context * c.data);
    });
  }
  if (model.experts == 0) {
    if (c.expert != 1) {
      wrong([&] { return fmt::format("expert is {} and the model has no experts, expected 1", c.expert); });
    }
  } else {
    divides("expert", c.expert, "the number of experts,", model.experts);
    if (c.expert_tensor != 1 && c.expert_tensor != c.tensor) {
      wrong([&] { return fmt::format("expert_tensor is {}, expected 1 or tensor, {}", c.expert_tensor, c.tensor); });
    } else {
      divides("expert x expert_tensor", c.expert * c.expert_tensor, "tensor x context x data,",
              c.tensor * c.context * c.data);
    }
  }
  if (c.recompute_layers < -1) {
    wrong([&] { return fmt::format("recompute_layers is {}, expected 0 or more, or -1 for all", c.recompute_layers); });
  }
  if (c.recompute_layers == 0 && c.recompute_method == RecomputeMethod::kUniform) {
    wrong([&] { return fmt::format("recompute_layers is 0, expected units of 1 layer or more"); });
  }
  const auto check_bytes = [&](std::string_view name, std::string_view of, double value) {
    if (value > 0 && value <= 16) return;
    wrong([&] { return fmt::format("{} of {} is {}, expected above 0, at most 16", name, of, value); });
  };
  for (size_t i = 0; i < kTensorKindCount; ++i) {
    const std::string_view kind = to_string(static_cast<TensorKind>(i));
    check_bytes("parameter_bytes", kind, c.parameter_bytes[i]);
    check_bytes("gradient_bytes", kind, c.gradient_bytes[i]);
  }
  check_bytes("activation_bytes", "an element", c.activation_bytes);
  if (!(c.expert_imbalance >= 1) || std::isinf(c.expert_imbalance)) {
    wrong([&] { return fmt::format("expert_imbalance is {}, expected 1 or more", c.expert_imbalance); });
  }
  if (!(c.expert_capacity >= 0) || std::isinf(c.expert_capacity)) {
    wrong([&] { return fmt::format("expert_capacity is {}, expected above 0, or 0 for no limit", c.expert_capacity); });
  }
  if (c.expert_padding && c.expert_capacity == 0) {
    wrong([&] { return fmt::format("expert_padding without expert_capacity, expected the tokens to pad to"); });
  }
  if (c.expert_capacity > 0 && model.experts == 0) {
    wrong([&] {
      return fmt::format("expert_capacity is {} and the model has no experts, expected none", c.expert_capacity);
    });
  }
  for (int i = 0; i < kTrafficCount; ++i) {
    const double part = c.overlap[static_cast<size_t>(i)];
    if (!(part >= 0 && part <= 1)) {
      wrong([&] {
        return fmt::format("overlap of {} is {}, expected a number from 0 to 1", to_string(static_cast<Traffic>(i)),
                           part);
      });
    }
  }
}

}  // namespace

std::string training_mistakes(const TransformerShape& model, const TrainingConfig& config, int64_t devices) {
  std::vector<std::string> texts;
  find_mistakes(model, config, devices, [&](const auto& text) { texts.push_back(text()); });
  return fmt::format("{}", fmt::join(texts, "; "));
}

bool is_consistent(const TransformerShape& model, const TrainingConfig& config, int64_t devices) noexcept {
  bool is_right = true;
  find_mistakes(model, config, devices, [&](const auto& /*text*/) { is_right = false; });
  return is_right;
}

std::vector<int64_t> stage_layers(int64_t layers, int64_t stages) {
  const int64_t most = (layers + stages - 1) / stages;
  std::vector<int64_t> result(static_cast<size_t>(stages), most);
  size_t first = 0;
  size_t last = result.size() - 1;
  for (int64_t missing = most * stages - layers, i = 0; i < missing; ++i) {
    --result[i % 2 == 0 ? last-- : first++];
  }
  return result;
}

double chunks_in_flight(const TrainingConfig& config, int64_t stage) noexcept {
  const auto all = static_cast<double>(config.microbatches() * config.chunks);
  const int64_t p = config.pipeline;
  switch (config.schedule) {
    case PipelineSchedule::kGPipe:
      return all;
    case PipelineSchedule::kOneForwardOneBackward:
      return std::min(all, static_cast<double>(p - stage));
    case PipelineSchedule::kInterleaved:
      return std::min(all, static_cast<double>((p - stage - 1) * 2 + (config.chunks - 1) * p + 1));
  }
  return all;
}

}  // namespace artifex_devices::planner
