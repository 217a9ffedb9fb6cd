// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/partition/shard_domains.h"
#include "artifex_planner/kind_names.h"
#include "artifex_planner/reshard/search.h"

namespace artifex_devices::planner {

/// The collectives that lead from one sharding to another (Rink et al. 2021, arXiv:2112.01075).
enum class ReshardMove : uint8_t {
  kSlice,     // axes with replicas shard a dimension: each device keeps its part, nothing moves
  kAllToAll,  // the innermost axes of one dimension become the innermost of another
  kPermute,   // shards change places, their shape stays
  kAllGather  // the innermost axes of a dimension no longer shard it
};
template <>
inline constexpr std::array<std::string_view, 4> kKindNames<ReshardMove>{"slice", "all_to_all", "permute",
                                                                         "all_gather"};

/// A part of a mesh axis. Meshes are factored into primes, because a step may move a part of an axis.
struct SubAxis {
  std::string label;  // "x", or "x.0" for the major one of several
  int64_t size = 1;
  int64_t position_stride = 1;  // between neighbours, in positions of the mesh
};

struct ReshardStep {
  ReshardMove move = ReshardMove::kSlice;
  std::vector<int64_t> axes;      // numbers of sub-axes that move, major to minor; none for a permute
  int64_t from_dimension = -1;    // that they shard before; -1 for a slice and a permute
  int64_t to_dimension = -1;      // that they shard after; -1 for a gather and a permute
  int64_t group = 1;              // devices that work together: product of the axes; of a permute all
  int64_t shard_bytes = 0;        // of one device before
  int64_t shard_bytes_after = 0;  // of one device after
  int64_t bytes_in = 0;           // received by the busiest device
};

/// A sequence of collectives on even shards. Between its steps no shard is larger than the larger of both ends.
struct ReshardSequence {
  std::vector<SubAxis> axes;
  std::vector<ReshardStep> steps;
  /// Tiles before each step and after the last: one more than steps. Positions are positions in the mesh.
  std::vector<TileGrid> grids;
  int64_t bytes_in = 0;      // of the busiest device of each step, summed up
  int64_t lower_bound = 0;   // that the busiest device must receive by any sequence
  int64_t peak_bytes = 0;    // maximum of a device: the source's shard, which stays, a step's input and its output
  bool is_cheapest = false;  // no other sequence of these moves has fewer bytes_in; false where the search was stopped
};

struct SequenceOptions {
  std::optional<int64_t> memory_limit;  // of peak_bytes
  SearchLimits search{};
};

/// One end: a mesh and a spec on it. Both ends have the same devices in the same order.
struct ReshardEnd {
  const AbstractMesh& mesh;
  const PartitionSpec& spec;
};

/// The sequence with the fewest bytes_in. Throws InvalidArgument if no sequence exists: for meshes of different sizes
/// or without common factors (2 x 3 and 3 x 2), dimensions that their axes do not divide, arrays above 2^58 bytes, and
/// a memory_limit that is too small for every sequence (the message has the smallest possible limit that was found).
/// Example: (16, 16) float32 on x = 4, y = 2 from P('x', None) to P(None, 'x'): one all-to-all, 192 bytes to each.
ReshardSequence make_reshard_sequence(const Dims& shape, int64_t itemsize, const ReshardEnd& source,
                                      const ReshardEnd& destination, const SequenceOptions& options = {});

}  // namespace artifex_devices::planner
