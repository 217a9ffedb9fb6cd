// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/cost/groups.h"

namespace artifex_devices::planner {
namespace {

constexpr size_t kCollectivesBetweenInterrupts = 256;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<NodeGroup>& groups_of(const StepNetwork& network, MeshAxes axes) {
  if (axes >= network.groups.size() || network.groups[axes].empty()) {
    throw_error<Unavailable>("step_seconds: the axes {:#b} of the mesh have no groups; expected them from step_network",
                             axes);
  }
  return network.groups[axes];
}

/// The cheapest algorithm in the slowest group, for a collective of `bytes`.
TransferCost cost_of(const StepCollective& collective, const StepNetwork& network, double bytes,
                     const Efficiency& efficiency = ideal_efficiency()) {
  return slowest_costs(collective.kind, bytes, groups_of(network, collective.axes), efficiency).front();
}

/// A line: intercept + slope * scale.
struct Line {
  double intercept = 0;
  double slope = 0;
  double at(double scale) const noexcept { return intercept + slope * scale; }
  Line& operator+=(const Line& other) noexcept {
    intercept += other.intercept;
    slope += other.slope;
    return *this;
  }
};
Line line_of(const BatchAmount& amount, double rate) noexcept { return {amount.fixed / rate, amount.scaled / rate}; }
const Line& larger(const Line& a, const Line& b, double scale) noexcept { return a.at(scale) >= b.at(scale) ? a : b; }

/// Concurrent parts of a step, as tangents of their curves at one scale.
struct Tangents {
  Line compute;
  Line memory;
  Line network;
  Line device;
};

Tangents tangents_at(const StepWork& work, const DeviceRates& hardware, const StepNetwork& network, double scale) {
  Tangents sum;
  for (const StepProduct& product : work.products) {
    const Line compute = line_of(product.flops, hardware.peak(product.format));
    const Line memory = line_of(product.bytes, hardware.memory_bandwidth);
    sum.compute += compute;
    sum.memory += memory;
    sum.device += larger(compute, memory, scale);
  }
  const Line update = line_of(work.update_bytes, hardware.memory_bandwidth);
  sum.memory += update;
  sum.device += update;
  for (size_t i = 0; i < work.collectives.size(); ++i) {
    if (i % kCollectivesBetweenInterrupts == 0) check_interrupt();
    const StepCollective& each = work.collectives[i];
    // At zero bytes, use the slope of the first bytes: a tangent without a slope would touch its curve only there.
    const double bytes = each.bytes.at(scale) > 0 || each.bytes.scaled <= 0 ? each.bytes.at(scale) : 1;
    const TransferCost cost = cost_of(each, network, bytes);
    const double per_byte = bytes > 0 ? cost.transfer / bytes : 0;
    const auto count = static_cast<double>(each.count);
    sum.network += {count * (cost.latency + per_byte * each.bytes.fixed), count * per_byte * each.bytes.scaled};
  }
  return sum;
}

using Curves = std::array<Line, 3>;  // by StepBound

constexpr double kFar = 1e12;  // a scale beyond all bends

/// The intersection of two curves, from one end, by Newton's method. It converges exactly after a few pieces, because
/// the difference of the curves is convex or concave; where groups of several kinds make it neither, bisection finds
/// the intersection.
template <class At>
std::optional<double> meeting(At curves_at, size_t first, size_t second, double start) {
  double scale = start;
  for (int i = 0; i < 100; ++i) {
    const Curves curves = curves_at(scale);
    const double slope = curves[first].slope - curves[second].slope;
    const double intercept = curves[first].intercept - curves[second].intercept;
    const double next = -intercept / slope;
    if (!(next >= 0) || std::isinf(next)) return std::nullopt;  // no intersection on this side
    if (std::abs(next - scale) <= 1e-12 * next) return next;
    scale = next;
  }
  const auto is_above = [&](double at) {
    const Curves curves = curves_at(at);
    return curves[first].at(at) > curves[second].at(at);
  };
  double low = 0;
  double high = kFar;
  if (is_above(low) == is_above(high)) return std::nullopt;
  while (high - low > 1e-14 * high) (is_above((low + high) / 2) == is_above(low) ? low : high) = (low + high) / 2;
  return high;
}

StepBound largest_at(const Curves& curves, double scale) noexcept {
  size_t most = 0;
  for (size_t i = 1; i < curves.size(); ++i) {
    if (curves[i].at(scale) > curves[most].at(scale)) most = i;
  }
  return static_cast<StepBound>(most);
}

}  // namespace

double StepSeconds::overlapped() const noexcept { return std::max({compute, memory, network}); }

StepBound StepSeconds::overlapped_bound() const noexcept {
  if (network > compute && network > memory) return StepBound::kNetwork;
  return memory > compute ? StepBound::kMemory : StepBound::kCompute;
}

StepBound StepSeconds::serial_bound() const noexcept {
  if (network > device) return StepBound::kNetwork;
  return memory > compute ? StepBound::kMemory : StepBound::kCompute;
}

TransferCost step_collective_cost(const StepCollective& collective, const StepNetwork& network,
                                  const Efficiency& efficiency) {
  return cost_of(collective, network, collective.bytes.at(1), efficiency);
}

StepSeconds step_seconds(const StepWork& work, const DeviceRates& hardware, const StepNetwork& network, double scale) {
  const Tangents lines = tangents_at(work, hardware, network, scale);
  return {lines.compute.at(scale), lines.memory.at(scale), lines.network.at(scale), lines.device.at(scale)};
}

std::vector<StepRegime> step_regimes(const StepWork& work, const DeviceRates& hardware, const StepNetwork& network,
                                     bool overlaps) {
  // Without overlap the network competes with all products; their own two limits are compared separately.
  const auto tangents = [&](double scale) { return tangents_at(work, hardware, network, scale); };
  const auto curves_at = [&](double scale) {
    const Tangents at = tangents(scale);
    return Curves{at.compute, at.memory, at.network};
  };
  const auto device_at = [&](double scale) {
    const Tangents at = tangents(scale);
    return Curves{at.device, at.device, at.network};
  };
  std::vector<double> ends = {0, kInfinity};
  const auto note = [&](auto curves, size_t first, size_t second) {
    for (const double start : {0.0, kFar}) {
      const std::optional<double> found = meeting(curves, first, second, start);
      if (found && *found > 0) ends.push_back(*found);
    }
  };
  note(curves_at, 0, 1);
  for (const size_t device : {size_t{0}, size_t{1}}) {
    if (overlaps) note(curves_at, device, 2);
  }
  if (!overlaps) note(device_at, 0, 2);
  std::ranges::sort(ends);
  std::vector<StepRegime> regimes;
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    if (ends[i + 1] <= ends[i] * (1 + 1e-11)) continue;
    const double middle = std::isinf(ends[i + 1]) ? 2 * ends[i] + kFar : (ends[i] + ends[i + 1]) / 2;
    StepBound bound = largest_at(curves_at(middle), middle);
    if (!overlaps) {
      const Tangents at = tangents(middle);
      bound = at.network.at(middle) > at.device.at(middle)   ? StepBound::kNetwork
              : at.memory.at(middle) > at.compute.at(middle) ? StepBound::kMemory
                                                             : StepBound::kCompute;
    }
    if (!regimes.empty() && regimes.back().bound == bound) {
      regimes.back().end = ends[i + 1];
    } else {
      regimes.push_back({bound, regimes.empty() ? 0 : regimes.back().end, ends[i + 1]});
    }
  }
  return regimes;
}

double largest_step_scale(const StepMemory& memory, int64_t memory_bytes) noexcept {
  const BatchAmount kept = memory.kept();
  const double room = static_cast<double>(memory_bytes) - kept.fixed;
  const auto most = [&](const BatchAmount& working) {
    const double grows = kept.scaled + working.scaled;
    const double left = room - working.fixed;
    return grows > 0 ? left / grows : left >= 0 ? kInfinity : -1.0;
  };
  double scale = most({});
  for (const BatchAmount& each : memory.working) scale = std::min(scale, most(each));
  return scale;
}

}  // namespace artifex_devices::planner
