// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/base/shape.h"

namespace artifex_devices::planner {

/// The layout of an array: for each dimension the numbers of the axes that shard it, major to minor.
using AxesByDimension = std::vector<std::vector<int>>;

/// The problem of a search for reshard sequences. Costs are bytes that the busiest device receives.
struct ReshardSpace {
  Dims shape;
  int64_t array_bytes = 0;
  std::vector<int64_t> sizes;  // of axes
  int64_t source_bytes = 0;    // of a shard
  int64_t largest_shard = 0;   // maximum after a step
  std::optional<int64_t> memory_limit;

  /// Bytes of one shard; nothing where a dimension does not divide.
  std::optional<int64_t> shard_bytes(const AxesByDimension& layout) const;
  /// Whether a step is allowed: the bytes that a device holds during it are within the limits.
  bool allows(int64_t before, int64_t after, bool from_source) const noexcept {
    return after <= largest_shard && (!memory_limit || held(before, after, from_source) <= *memory_limit);
  }
  /// Bytes during a step. The source's shard remains in memory; from the second step on, the input is an additional
  /// shard.
  int64_t held(int64_t before, int64_t after, bool from_source) const noexcept {
    return source_bytes + (from_source ? 0 : before) + after;
  }
};

/// The layouts of a sequence, both ends included; successive layouts differ by one move.
struct ReshardPath {
  std::vector<AxesByDimension> layouts;
  int64_t bytes_in = 0;
};

/// Returns a sequence that always exists within the limit of shards (not always within a memory limit): slices, a
/// permute, all-to-alls, gathers, and a second permute if the sizes have different primes. Axis sizes are primes.
ReshardPath safe_path(const ReshardSpace& space, const AxesByDimension& source, const AxesByDimension& destination);

struct ReshardSearchResult {
  std::optional<ReshardPath> path;  // nothing where none was found within `at_most`
  bool is_complete = false;         // nothing cheaper exists
};

/// Limits of a search, from each end.
struct SearchLimits {
  int64_t states = 20'000;  // stored layouts
  int64_t looks = 40'000;   // examined steps from one layout to another
};

/// Searches by Dijkstra's algorithm from both ends, which join at a common layout or by one permute: the cheapest
/// sequence has at most one permute.
ReshardSearchResult search_reshards(const ReshardSpace& space, const AxesByDimension& source,
                                    const AxesByDimension& destination, int64_t at_most, const SearchLimits& limits);

/// The axes that an all-to-all moves from the end of one dimension to the end of another; nothing for another step.
std::optional<std::vector<int>> exchanged_axes(const AxesByDimension& before, const AxesByDimension& after);

/// Bytes that the busiest device receives in one move.
int64_t move_bytes(const ReshardSpace& space, const AxesByDimension& before, const AxesByDimension& after);

}  // namespace artifex_devices::planner
