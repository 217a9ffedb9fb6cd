// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "artifex_planner/cost/device_rates.h"
#include "artifex_planner/step/network.h"
#include "artifex_planner/step/work.h"

namespace artifex_devices::planner {

enum class StepBound : uint8_t { kCompute, kMemory, kNetwork };
template <>
inline constexpr std::array<std::string_view, 3> kKindNames<StepBound>{"compute", "memory", "network"};

/// Seconds of one step on each device at published rates: bounds.
struct StepSeconds {
  double compute = 0;  // FLOPs at the peak
  double memory = 0;   // bytes of operands, results and the update at the memory's bandwidth
  double network = 0;  // sum of the collectives
  double device = 0;   // sum of the products, each at its own limit, and the update
  /// All three at the same time: the maximum.
  double overlapped() const noexcept;
  StepBound overlapped_bound() const noexcept;
  /// Collectives and products in sequence: the sum.
  double serial() const noexcept { return device + network; }
  StepBound serial_bound() const noexcept;
};

/// Estimates the seconds of the work at `scale` times the model's batch. Throws Unavailable for a format without a
/// published peak and for axes without groups.
StepSeconds step_seconds(const StepWork& work, const DeviceRates& hardware, const StepNetwork& network,
                         double scale = 1);
/// The cheapest algorithm of one collective in the slowest group, for one of its `count` repetitions.
TransferCost step_collective_cost(const StepCollective& collective, const StepNetwork& network,
                                  const Efficiency& efficiency);

/// The batch from `begin` to `end` (scales; 0 to infinity) that `bound` limits.
struct StepRegime {
  StepBound bound = StepBound::kCompute;
  double begin = 0;
  double end = 0;
};
/// All regimes in order, solved exactly: seconds are piecewise linear in the batch. `overlaps`: for overlapped(), else
/// for serial().
std::vector<StepRegime> step_regimes(const StepWork& work, const DeviceRates& hardware, const StepNetwork& network,
                                     bool overlaps);

/// The largest scale whose memory fits in `memory_bytes`; below 0 where even an empty batch does not fit, infinity
/// where nothing grows.
double largest_step_scale(const StepMemory& memory, int64_t memory_bytes) noexcept;

}  // namespace artifex_devices::planner
