// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// How an array is cut: for each dimension the numbers of the axes that cut it, major to minor.
using AxesByDimension = std::vector<std::vector<int>>;

/// What a search of reshard sequences is about. Costs are bytes that the busiest device receives.
struct ReshardSpace {
  Dims shape;
  int64_t array_bytes = 0;
  std::vector<int64_t> sizes;  // of axes
  int64_t source_bytes = 0;    // of a shard
  int64_t largest_shard = 0;   // that a step may leave behind
  std::optional<int64_t> memory_limit;

  /// Nothing where a dimension does not divide.
  std::optional<int64_t> shard_bytes(const AxesByDimension& cut) const;
  /// Whether a step may be taken: what the device holds meanwhile is within the limits.
  bool allows(int64_t before, int64_t after, bool from_source) const noexcept {
    return after <= largest_shard && (!memory_limit || held(before, after, from_source) <= *memory_limit);
  }
  /// The source's shard stays; a step's input is another one unless it is the first.
  int64_t held(int64_t before, int64_t after, bool from_source) const noexcept {
    return source_bytes + (from_source ? 0 : before) + after;
  }
};

/// The cuts on the way, both ends included, neighbours one move apart.
struct ReshardPath {
  std::vector<AxesByDimension> cuts;
  int64_t bytes_in = 0;
};

/// A way that always exists within the limits of shards (not always within a memory limit): slices, a permute,
/// all-to-alls, gathers, and where sizes of different primes meet a second permute. Axes are primes.
ReshardPath safe_path(const ReshardSpace& space, const AxesByDimension& source, const AxesByDimension& destination);

struct ReshardSearchResult {
  std::optional<ReshardPath> path;  // none within `at_most` found: nothing
  bool is_complete = false;         // nothing cheaper exists
};

/// What a search may take, from each end.
struct SearchLimits {
  int64_t states = 20'000;  // cuts that are kept
  int64_t looks = 40'000;   // steps from one cut to another that are looked at
};

/// Dijkstra from both ends, joined where they meet or by one permute, which is all that the cheapest way needs.
ReshardSearchResult search_reshards(const ReshardSpace& space, const AxesByDimension& source,
                                    const AxesByDimension& destination, int64_t at_most, const SearchLimits& limits);

/// The axes that an all-to-all moves from the end of one dimension to the end of another; nothing for another step.
std::optional<std::vector<int>> exchanged_axes(const AxesByDimension& before, const AxesByDimension& after);

/// Bytes that a busiest device receives from one cut to a neighbour.
int64_t move_bytes(const ReshardSpace& space, const AxesByDimension& before, const AxesByDimension& after);

}  // namespace artifex_devices
