// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/inference/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace artifex_devices::planner {

std::string inference_mistakes(const TransformerShape& shape, const Cluster& cluster, const InferenceConfig& config) {
  std::vector<std::string> wrong;
  for (const auto& [name, value] :
       {std::pair{"tensor", config.tensor}, std::pair{"pipeline", config.pipeline}, std::pair{"expert", config.expert},
        std::pair{"batch", config.batch}, std::pair{"prompt", config.prompt}, std::pair{"output", config.output}}) {
    if (value < 1 || value > kMostTrainingCount) {
      wrong.push_back(fmt::format("{} is {}, expected 1 to {}", name, value, kMostTrainingCount));
    }
  }
  const auto check_bytes = [&](std::string_view name, double value) {
    if (!(value > 0 && value <= 16)) {
      wrong.push_back(fmt::format("{} is {}, expected above 0, at most 16", name, value));
    }
  };
  for (size_t i = 0; i < config.parameter_bytes.size(); ++i) {
    check_bytes(fmt::format("parameter_bytes of {}", kKindNames<TensorKind>[i]), config.parameter_bytes[i]);
  }
  check_bytes("cache_bytes", config.cache_bytes);
  if (!wrong.empty()) return fmt::format("{}", fmt::join(wrong, "; "));
  const int64_t devices = config.tensor * config.pipeline;
  if (cluster.device_count() % devices != 0) {
    wrong.push_back(fmt::format("tensor {} x pipeline {} are {} devices, expected a divisor of the cluster's {}",
                                config.tensor, config.pipeline, devices, cluster.device_count()));
  }
  if (shape.heads % config.tensor != 0) {
    wrong.push_back(fmt::format("tensor is {}, expected a divisor of {} heads", config.tensor, shape.heads));
  }
  if (config.pipeline > shape.layers) {
    wrong.push_back(fmt::format("pipeline is {}, expected at most {} layers", config.pipeline, shape.layers));
  }
  if (config.expert != 1 && (config.expert != config.tensor || shape.experts % config.expert != 0)) {
    wrong.push_back(fmt::format("expert is {}, expected 1, or tensor, {}, as a divisor of {} experts", config.expert,
                                config.tensor, shape.experts));
  }
  return fmt::format("{}", fmt::join(wrong, "; "));
}

TrainingConfig pass_config(const InferenceConfig& config, int64_t sequence) {
  TrainingConfig pass;
  pass.tensor = config.tensor;
  pass.pipeline = config.pipeline;
  pass.expert = config.expert;
  pass.expert_tensor = config.expert > 1 ? 1 : config.tensor;
  pass.microbatch = config.batch;
  pass.batch = config.batch;
  pass.sequence = sequence;
  pass.format = config.format;
  pass.parameter_bytes = config.parameter_bytes;
  return pass;
}

double local_cache_bytes(const TransformerShape& shape, const InferenceConfig& config, int64_t tokens) {
  const int64_t ways = shape.kv_lora_rank > 0 ? 1 : std::min(config.tensor, shape.kv_heads);
  return to_real(cache_elements(shape, tokens)) * config.cache_bytes / to_real(ways);
}

}  // namespace artifex_devices::planner
