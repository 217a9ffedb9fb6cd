// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/cluster/torus_assignment.h"

namespace artifex_devices {

/// A torus and the rates of its links. Sizes of 1 to 2^20, at most 8 axes.
struct Torus {
  std::vector<int64_t> dims;
  std::vector<bool> wraps;    // of each axis whether its ends are joined; of no effect below 3
  double link_bandwidth = 1;  // bytes/s of one link, one way
  double hop_latency = 0;     // seconds
};

/// Part of a physical axis in a logical axis: `count` chips, each `stride` from the next.
struct AxisPart {
  int physical_axis = 0;
  int64_t count = 1;
  int64_t stride = 1;
  bool is_ring = false;  // their ends are joined too
  double bandwidth = 0;  // bytes/s into the chip that is placed worst
  friend bool operator==(const AxisPart&, const AxisPart&) = default;
};

/// Rate of one logical axis of a mesh.
struct AxisRate {
  int64_t size = 1;
  std::vector<AxisPart> parts{};  // of physical axes with more than one chip; none if the chips do not form a grid
  double link_load = 0;           // without grid: transfers between neighbours that the busiest link carries at once
  double bandwidth = 0;  // bytes/s into the chip that is placed worst, all groups of the mesh at once; 0 of size 1
  int64_t hops = 0;      // of the longest path
};

/// Model: an all-gather is bound by what the worst-placed chip receives. A part brings it
///   2 W / stride on a ring (both ends joined, more than 2 chips on the axis), W / stride else,
/// as `stride` interleaved groups share the links. Parts add up, as the traffic goes along all axes at
/// once. Source: the lower bounds of all-gather on torus and mesh in "How to Scale Your Model"; strides are the
/// model's.
std::vector<AxisRate> rates_of(const Torus& torus, const TorusAssignment& assignment);

/// The same of chips in any order: `order[i]` is the place in the torus (row-major over its dims) of place i of the
/// mesh (row-major). Groups that do not form a grid of equal steps are joined as rings in their order, by the routes of
/// LinkLoads: 2 W / (transfers that the busiest link carries). An axis has the rate of its worst group.
std::vector<AxisRate> rates_of(const Torus& torus, const std::vector<int64_t>& mesh, const std::vector<int64_t>& order);

/// Seconds to gather `traffic[l]` bytes over axis l, one axis after the other: traffic (n-1)/n / bandwidth + hops.
double seconds_of(const Torus& torus, const std::vector<AxisRate>& rates, const std::vector<double>& traffic);

/// The assignment with the fewest seconds_of, found by trying all of them. `may_split` is as in assign_split_axes;
/// without it, axes stay whole. Among equally fast assignments, JAX's wins. Returns nullopt if no assignment fits. The
/// time grows with the product of the numbers of divisors of the axes, which is small.
/// Example: (2, 2, 4) on 2x2x4 is {{2, 1, 1}, {1, 2, 1}, {1, 1, 4}}.
std::optional<TorusAssignment> assign_exactly(const Torus& torus, const std::vector<int64_t>& mesh,
                                              const std::vector<double>& traffic, bool may_split);

}  // namespace artifex_devices
