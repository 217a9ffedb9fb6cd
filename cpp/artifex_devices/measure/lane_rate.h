// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace artifex_devices {

class Device;

/// How fast the workers of some lanes did one kind of work, all of them at the same time.
struct RateSeries {
  std::vector<double> rates;   // units a second of all workers together, in windows of time one after the other
  std::vector<double> shares;  // for each window, the part of it in which the workers had a CPU, 0 to 1
  int workers = 0;             // that worked at the same time
  int bound_workers = 0;       // of these, those that the system keeps on the CPUs of their lane
};

struct RateOptions {
  double seconds = 0.5;          // at most; a step that is under way, and the preparation, come on top
  double window_seconds = 0.02;  // of one rate; longer than the period of a quota where there is one
};

/// Does one piece of work on the calling thread and says how many units it was.
using WorkStep = std::function<int64_t()>;

/// Measures until the three best windows lie within 2 % or the time is up. `prepare(worker, workers)` is called on each
/// worker for each stretch of measuring, from several at once; steps of one worker follow each other. Lanes are those
/// of the worker pool; each gets as many steps at a time as it has workers. Waits with check_interrupt(): Interrupted
/// leaves at once, and the workers stop after their step. Throws what `prepare` or a step throws, and Unavailable when
/// no thread can be made. What the functions refer to must be owned by them: they may outlive the call.
RateSeries measure_rate(const std::vector<int>& lanes, const std::function<WorkStep(int, int)>& prepare,
                        const RateOptions& options);

/// The lanes on which a device's work runs: its own, or all where a made-up machine's device has none here. Throws
/// Unavailable for compile-only devices.
std::vector<int> lanes_of(const Device& device);
std::vector<int> all_lanes();

/// Workers that the lanes have together at full work.
int workers_of(const std::vector<int>& lanes);

}  // namespace artifex_devices
