// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "artifex_devices/base/id.h"

namespace artifex_devices {

class Device;

/// Measured rates of one kind of work that all workers of some lanes did at the same time.
struct RateSeries {
  std::vector<double> rates;   // units per second of all workers together, one for each time window
  std::vector<double> shares;  // for each window, the fraction of time in which the workers had a CPU, 0 to 1
  int workers = 0;             // number of workers that ran at the same time
  int bound_workers = 0;       // number of workers bound to the CPUs of their lane
};

struct RateOptions {
  double seconds = 0.5;          // at most, without the preparation and the last step
  double window_seconds = 0.02;  // length of one window; longer than the period of a CPU quota, if any
};

/// Does one piece of work on the calling thread and returns its number of units.
using WorkStep = std::function<int64_t()>;

/// Measures until the three best windows agree within 2 % or the time is over. `prepare(worker, workers)` is called
/// concurrently on each worker before it measures; the steps of one worker run one after another. Lanes are lanes of
/// the worker pool; each of its workers runs one step at a time. Waits with check_interrupt():
/// Interrupted is thrown at once, and the workers stop after their step. Throws what `prepare` or a step throws, and
/// Unavailable if no thread can be created. The functions must own what they refer to: they may outlive the call.
RateSeries measure_rate(const std::vector<LaneId>& lanes, const std::function<WorkStep(int, int)>& prepare,
                        const RateOptions& options);

/// Returns the lanes that run a device's work: its own lane, or all lanes for a device of a simulated machine. Throws
/// Unavailable for compile-only devices.
std::vector<LaneId> lanes_of(const Device& device);
std::vector<LaneId> all_lanes();

/// Returns the total number of workers of the lanes.
int workers_of(const std::vector<LaneId>& lanes);

}  // namespace artifex_devices
