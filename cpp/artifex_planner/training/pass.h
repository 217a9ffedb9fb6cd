// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/training/links.h"
#include "artifex_planner/training/memory.h"

namespace artifex_devices::planner {

/// Seconds of one pass of one microbatch over some layers of a device. Communication is all of it, hidden or not.
struct PassSeconds {
  double products = 0;
  double attention = 0;
  double scores = 0;  // the part of it that reads and writes scores: none with flash attention
  double elementwise = 0;
  double tensor = 0;
  double tensor_beside = 0;  // always hidden behind the products that do not need it
  double context = 0;
  double expert = 0;
  double fixed = 0;
  std::vector<TrainingMessage> messages;  // where the links list them
  double compute() const noexcept { return products + attention + elementwise; }
  PassSeconds& add(const PassSeconds& other, double times);
};

/// Prices passes of layers, the embedding and the output.
class PassPricer {
 public:
  PassPricer(const TrainingModel& model, const TrainingConfig& config, const TrainingHardware& hardware,
             TrainingLinks& links, const Efficiency& efficiency);

  PassSeconds layer(LayerKind kind, bool is_backward);
  PassSeconds embedding(bool is_backward);
  PassSeconds head(bool is_backward);
  double tokens() const noexcept { return tokens_; }

 private:
  double products(const std::vector<LayerProduct>& all, const ProductRates& rates, double tokens, int64_t tensor,
                  bool is_backward) const;
  /// Bytes that are read and written to convert the operands of 8-bit products.
  double cast_bytes(const std::vector<LayerProduct>& all, double tokens, int64_t tensor, bool is_backward) const;
  void add_attention(PassSeconds& pass, bool is_backward) const;
  double elementwise_seconds(LayerKind kind, bool is_backward) const;
  double tensor_seconds(CollectiveOp op, double bytes);
  /// A sharded region's communication, in and out: all-reduces, or gathers and reduce-scatters between shards.
  void add_region(PassSeconds& pass, double bytes, bool is_backward);
  double context_seconds(bool is_backward);
  void add_experts(PassSeconds& pass, bool is_backward);

  const TrainingModel& model_;
  const TrainingConfig& config_;
  TrainingLinks& links_;
  const Efficiency& efficiency_;
  ProductRates rates_;
  ProductRates expert_rates_;  // of routed experts
  ProductRates head_rates_;    // of the output and attention, which multiply in 16 bits where layers have 8
  double tokens_ = 0;
};

}  // namespace artifex_devices::planner
