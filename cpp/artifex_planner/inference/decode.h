// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/inference/config.h"
#include "artifex_planner/kind_names.h"
#include "artifex_planner/training/links.h"
#include "artifex_planner/training/memory.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {

/// The parts of a decoding step.
enum class DecodePart : uint8_t {
  kProducts,     // products of the batch with all matrices that it uses
  kAttention,    // attention to the KV cache
  kElementwise,  // norms, activation functions, logits
  kTensor,       // all-reduces over the tensor axis
  kPipeline,     // messages between stages
  kFixed         // starts and ends of kernels
};
inline constexpr int kDecodePartCount = 6;
template <>
inline constexpr std::array<std::string_view, 6> kKindNames<DecodePart>{"products", "attention", "elementwise",
                                                                        "tensor",   "pipeline",  "fixed"};

/// Seconds of one step, in which each sequence of a batch gets one token.
struct DecodeSeconds {
  std::array<double, kDecodePartCount> parts{};
  double total() const noexcept;
  double& operator[](DecodePart part) noexcept { return parts[static_cast<size_t>(part)]; }
  double operator[](DecodePart part) const noexcept { return parts[static_cast<size_t>(part)]; }
};

/// Expected number of distinct experts of a layer that `tokens` tokens are routed to, each to `chosen` of `experts`.
/// Example: of 8 experts, with 2 for each token, one token uses 2 and two tokens 8 (1 - (6/8)^2) = 3.5.
double distinct_experts(double experts, double chosen, double tokens) noexcept;

/// Seconds of an all-reduce in one step: each of `devices` devices reads the arrays of all others over its links at
/// `rate` bytes/s. 3.0 us and 0.36 us for each device are close to the 3.7, 4.8 and 5.9 us that were measured for 512
/// float32 elements on 2, 4 and 8 H100 (sgl-project/sglang, pull request 2904).
double one_shot_seconds(double bytes, double devices, double rate) noexcept;

/// Prices decoding steps. A step reads each matrix once for the whole batch, and the KV cache of each sequence. Its
/// products have as many rows as the batch has sequences: they take the time of their bytes at the memory's bandwidth
/// or of their FLOPs, whichever is longer, and fill no tiles.
class DecodePricer {
 public:
  DecodePricer(const TrainingModel& model, const InferenceConfig& config, const TrainingHardware& hardware,
               TrainingLinks& links, const Efficiency& efficiency);

  /// One step of a batch whose sequences have `context` tokens, from the first stage to the last.
  DecodeSeconds step(int64_t context);
  /// The product with the output's matrix, for the last token of each sequence.
  double head() const;
  /// Factors in which element-wise kernels reach the bandwidth that decoding reaches.
  const Efficiency& streaming() const noexcept { return streaming_; }

 private:
  double product(double rows, double inner, double columns, TensorKind kind) const;
  double layer_products(LayerKind kind) const;
  double attention(int64_t context) const;
  double all_reduce(double bytes);

  const TrainingModel& model_;
  const InferenceConfig& config_;
  const TrainingHardware& hardware_;
  TrainingLinks& links_;
  Efficiency streaming_;
  double bandwidth_ = 0;       // bytes/s of the memory
  double rate_ = 0;            // FLOP/s of products
  double attention_rate_ = 0;  // FLOP/s of attention
  double rows_ = 0;            // sequences of the batch
};

}  // namespace artifex_devices::planner
