// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "artifex_planner/profile/parts.h"
#include "artifex_planner/training/time.h"

namespace artifex_devices::planner {

/// Expected seconds of a step of one device by the kinds of operations that a profile shows, hidden or not.
struct KindSeconds {
  PerKind<double> kinds{};
  std::array<std::array<double, kMessageCount>, kTrafficCount> messages{};  // by traffic; they sum to their kinds
  double tensor_beside = 0;                                                 // of the tensor's messages: always hidden
  double layer_passes = 0;  // how often a step takes Factor::kLayerSeconds
};

/// Prices the devices of one stage of a step. Without flash attention, products of attention are products, and its
/// reads and writes of scores elementwise operations.
class KindPricer {
 public:
  KindPricer(const TransformerShape& shape, const Cluster& cluster, TrainingConfig config, int64_t stage);
  KindSeconds seconds(const Efficiency& efficiency);
  const TrainingConfig& config() const noexcept { return config_; }

 private:
  TrainingModel model_;
  TrainingConfig config_;
  int64_t stage_;
  TrainingHardware hardware_;
  std::vector<TrainingLinks> links_;  // one for each message
};

}  // namespace artifex_devices::planner
