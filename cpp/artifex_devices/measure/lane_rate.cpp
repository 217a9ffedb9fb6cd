// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/measure/lane_rate.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>

#include "artifex_devices/base/affinity.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {
namespace {

constexpr double kStretchSeconds = 0.12;
constexpr double kSettled = 0.02;

double clock_seconds(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Reading {
  double time;
  double cpu_time;
  double units;  // total so far
};

// Readings of one worker in one run.
struct Record {
  std::vector<Reading> readings;
  bool bound = false;

  /// Interpolates linearly between the readings.
  double at(double time, double Reading::* what) const {
    const auto after = std::ranges::lower_bound(readings, time, {}, &Reading::time);  // readings before and after exist
    if (after == readings.begin()) return readings.front().*what;
    if (after == readings.end()) return readings.back().*what;
    const Reading& low = *(after - 1);
    const double part = (time - low.time) / std::max(after->time - low.time, 1e-12);
    return low.*what + part * ((*after).*what - low.*what);
  }
};

// Shared with the workers, because they may outlive the call after Ctrl-C.
struct Stretch {
  std::function<WorkStep(int, int)> prepare;
  double seconds = 0;
  std::vector<Record> records;
  std::atomic<int> ready{0};
  std::atomic<int> jobs_left{0};
  std::atomic<double> deadline{std::numeric_limits<double>::infinity()};
  std::atomic<bool> stop{false};
  Event ended;

  void work(int worker, const CpuSet* cpus) {
    Record& record = records[static_cast<size_t>(worker)];
    const int workers = static_cast<int>(records.size());
    const WorkStep step = prepare(worker, workers);
    record.bound = cpus && is_bound_to(*cpus);
    record.readings.reserve(1024);
    if (!stop.load(std::memory_order_relaxed)) step();  // warms up pages, caches and branch prediction
    double now = clock_seconds(CLOCK_MONOTONIC);
    // The run begins when the last worker is ready. Workers without a thread are not waited for.
    const double latest = now + 4 * seconds + 1;
    if (ready.fetch_add(1) + 1 == workers) deadline.store(now + seconds);
    double units = 0;
    record.readings.push_back({now, clock_seconds(CLOCK_THREAD_CPUTIME_ID), units});
    while (now < std::min(deadline.load(std::memory_order_relaxed), latest) && !stop.load(std::memory_order_relaxed)) {
      units += static_cast<double>(step());
      now = clock_seconds(CLOCK_MONOTONIC);
      record.readings.push_back({now, clock_seconds(CLOCK_THREAD_CPUTIME_ID), units});
    }
  }

  static bool is_bound_to(const CpuSet& cpus) noexcept {
    const AffinityMask allowed;
    bool inside = allowed.count() > 0;
    allowed.for_each([&](int cpu) { inside = inside && std::ranges::binary_search(cpus.cpus, cpu); });
    return inside;
  }
};

void run_stretch(const std::shared_ptr<Stretch>& stretch, const std::vector<LaneId>& lanes) {
  WorkerPool& pool = WorkerPool::process();
  const std::shared_ptr<const Machine> machine = Machine::live();
  const auto domains = std::ssize(machine->cpu_domains());
  stretch->jobs_left.store(static_cast<int>(lanes.size()));
  int first = 0;
  for (const LaneId lane : lanes) {
    const int workers = pool.lane_workers(lane);
    const CpuSet* cpus = lane.number() < domains ? &machine->cpu_domains()[lane.number()].cpus : nullptr;
    try {
      pool.submit(
          workers, lane,
          [stretch, machine, cpus, first](int64_t i) {
            try {
              stretch->work(first + static_cast<int>(i), cpus);
            } catch (...) {
              stretch->stop.store(true);
              throw;
            }
          },
          [stretch](std::exception_ptr error) {
            if (error) stretch->ended.set_error(std::move(error));
            if (stretch->jobs_left.fetch_sub(1) == 1) stretch->ended.set();
          });
    } catch (...) {
      stretch->stop.store(true);
      throw;
    }
    first += workers;
  }
  try {
    stretch->ended.wait();
  } catch (...) {
    stretch->stop.store(true);
    throw;
  }
}

// Adds the windows of the time in which all `records` overlap.
void add_windows(const std::vector<const Record*>& records, double window, RateSeries& series) {
  double begin = -std::numeric_limits<double>::infinity();
  double end = std::numeric_limits<double>::infinity();
  for (const Record* record : records) {
    begin = std::max(begin, record->readings.front().time);
    end = std::min(end, record->readings.back().time);
  }
  if (end - begin < 1e-6) return;
  // Whole windows; a shorter run is one window.
  const auto count = std::max<int64_t>(1, static_cast<int64_t>((end - begin) / window));
  const double length = std::min(window, end - begin);
  for (int64_t i = 0; i < count; ++i) {
    const double from = begin + static_cast<double>(i) * length;
    const double to = from + length;
    double units = 0;
    double cpu_time = 0;
    for (const Record* record : records) {
      units += record->at(to, &Reading::units) - record->at(from, &Reading::units);
      cpu_time += record->at(to, &Reading::cpu_time) - record->at(from, &Reading::cpu_time);
    }
    series.rates.push_back(units / length);
    series.shares.push_back(std::clamp(cpu_time / (length * static_cast<double>(records.size())), 0.0, 1.0));
  }
}

void add_stretch(const Stretch& stretch, double window, RateSeries& series) {
  std::vector<const Record*> worked;
  for (const Record& record : stretch.records) {
    if (record.readings.size() > 1) worked.push_back(&record);
  }
  if (worked.empty()) return;
  const size_t before = series.rates.size();
  add_windows(worked, window, series);
  if (series.rates.size() == before) {  // one after another, for lack of threads: use the readings of one
    worked = {*std::ranges::max_element(worked, {}, [](const Record* each) { return each->readings.size(); })};
    add_windows(worked, window, series);
  }
  series.workers = std::max(series.workers, static_cast<int>(worked.size()));
  series.bound_workers = static_cast<int>(std::ranges::count_if(worked, &Record::bound));
}

bool is_settled(std::vector<double> rates) {
  if (rates.size() < 6) return false;
  std::ranges::nth_element(rates, rates.begin() + 2, std::greater<>());
  const double best = std::max(rates[0], rates[1]);
  return best > 0 && (best - rates[2]) <= kSettled * best;
}

}  // namespace

RateSeries measure_rate(const std::vector<LaneId>& lanes, const std::function<WorkStep(int, int)>& prepare,
                        const RateOptions& options) {
  if (!(options.seconds > 0) || !std::isfinite(options.seconds) || !(options.window_seconds > 0) ||
      !std::isfinite(options.window_seconds) || lanes.empty()) {
    throw_error(
        "measure_rate: expected positive times and at least one lane, got seconds={}, window_seconds={}, {} lanes",
        options.seconds, options.window_seconds, lanes.size());
  }
  RateSeries series;
  double left = options.seconds;
  do {
    const auto stretch = std::make_shared<Stretch>();
    stretch->prepare = prepare;
    // At least six windows are needed to see that a rate is stable.
    stretch->seconds = std::min(left, std::max(kStretchSeconds, 2 * options.window_seconds));
    stretch->records.resize(static_cast<size_t>(workers_of(lanes)));
    run_stretch(stretch, lanes);
    add_stretch(*stretch, options.window_seconds, series);
    left -= stretch->seconds;
  } while (left > options.window_seconds && !is_settled(series.rates));
  return series;
}

std::vector<LaneId> lanes_of(const Device& device) {
  if (device.is_compile_only()) {
    throw_error<Unavailable>(
        "measure: {} is compile-only; expected a device with memory and cores; take one of devices()",
        device.to_string());
  }
  if (device.lane().number() < WorkerPool::process().lanes()) return {device.lane()};
  return all_lanes();
}

std::vector<LaneId> all_lanes() {
  const IdRange<LaneId> lanes(WorkerPool::process().lanes());
  return {lanes.begin(), lanes.end()};
}

int workers_of(const std::vector<LaneId>& lanes) {
  int sum = 0;
  for (const LaneId lane : lanes) sum += WorkerPool::process().lane_workers(lane);
  return sum;
}

}  // namespace artifex_devices
