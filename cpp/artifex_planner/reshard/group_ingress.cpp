// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/group_ingress.h"

#include <algorithm>
#include <utility>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

/// The tiles of each group, sorted, each once.
std::vector<std::vector<TileId>> tiles_of(const ShardDomains& domains, const std::vector<int64_t>& group_of,
                                          int64_t groups, std::string_view which) {
  const std::vector<TileId> tiles = domains.grid().tiles_by_position().values();
  if (group_of.size() != tiles.size()) {
    throw_error("group_ingress_bytes: {} groups are given for {} positions of the {}; expected one each",
                group_of.size(), tiles.size(), which);
  }
  std::vector<std::vector<TileId>> result(static_cast<size_t>(groups));
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (group_of[i] < 0 || group_of[i] >= groups) {
      throw_error("group_ingress_bytes: position {} of the {} is in group {}; expected 0 to {}", i, which, group_of[i],
                  groups - 1);
    }
    result[static_cast<size_t>(group_of[i])].push_back(tiles[i]);
  }
  for (auto& each : result) {
    std::ranges::sort(each);
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
  return result;
}

/// Elements of `box` in tiles of `held`. Visits the tiles that the group has or those under the box, whichever are
/// fewer.
int64_t elements_in(const IndexDomain& box, const ShardDomains& source, const std::vector<TileId>& held) {
  Dims first(box.rank(), 0);
  Dims last(box.rank(), 0);
  double under = 1;
  for (int64_t d = 0; d < box.rank(); ++d) {
    const int64_t chunk = source.shard_shape()[d];
    first[d] = box.origin[d] / chunk;
    last[d] = (box.origin[d] + box.shape[d] - 1) / chunk;
    under *= static_cast<double>(last[d] - first[d] + 1);
  }
  int64_t elements = 0;
  if (static_cast<double>(held.size()) < under) {
    for (const TileId tile : held) {
      if (const auto common = intersect(box, source.domain(tile))) elements += common->volume();
    }
    return elements;
  }
  Dims part = first;
  while (true) {
    int64_t tile = 0;
    for (int64_t d = 0; d < source.grid().parts().size(); ++d) tile = tile * source.grid().parts(d) + part[d];
    if (std::ranges::binary_search(held, TileId(tile))) {
      elements += intersect(box, source.domain(TileId(tile))).value().volume();
    }
    int64_t d = box.rank() - 1;
    for (; d >= 0 && part[d] == last[d]; --d) part[d] = first[d];
    if (d < 0) return elements;
    ++part[d];
  }
}

/// Adjacent parts of one dimension.
struct Run {
  int64_t first;
  int64_t count;
};

/// Parts of a grid that groups along ranges hold: in each dimension the parts of the group at position 0. The parts of
/// other groups begin at offsets that are digits of the grid.
class GroupParts {
 public:
  /// Empty if a range is not digits of the grid.
  static std::optional<GroupParts> of(const ShardDomains& domains, const std::vector<PositionRange>& inside) {
    GroupParts found(domains);
    std::vector<int64_t> boundaries{1};
    for (const TileGrid::Digit& digit : found.digits_) boundaries.push_back(digit.position_stride * digit.size);
    std::vector<std::vector<int64_t>> offsets(static_cast<size_t>(domains.shape().size()), {0});
    for (const PositionRange& range : inside) {
      if (range.size == 1) continue;
      if (!are_digits(range, boundaries)) return std::nullopt;
      for (const TileGrid::Digit& digit : found.digits_) {
        const int64_t begin = std::max(range.stride, digit.position_stride);
        const int64_t end = std::min(range.end(), digit.position_stride * digit.size);
        if (begin >= end || digit.dimension < 0) continue;
        std::vector<int64_t>& known = offsets[static_cast<size_t>(digit.dimension)];
        const size_t before = known.size();
        for (int64_t at = 1; at < end / begin; ++at) {
          const int64_t step = at * digit.part_stride * (begin / digit.position_stride);
          for (size_t i = 0; i < before; ++i) known.push_back(known[i] + step);
        }
      }
    }
    for (std::vector<int64_t>& known : offsets) {
      std::ranges::sort(known);
      std::vector<Run>& runs = found.runs_.emplace_back();
      for (const int64_t part : known) {
        if (!runs.empty() && runs.back().first + runs.back().count == part) {
          ++runs.back().count;
        } else {
          runs.push_back({part, 1});
        }
      }
    }
    return found;
  }

  /// The first part in each dimension of the group that begins at a position.
  void find_first(int64_t position, Dims* first) const {
    std::ranges::fill(*first, 0);
    for (const TileGrid::Digit& digit : digits_) {
      if (digit.dimension < 0) continue;
      (*first)[digit.dimension] += position / digit.position_stride % digit.size * digit.part_stride;
    }
  }
  const std::vector<Run>& runs(int64_t d) const noexcept { return runs_[static_cast<size_t>(d)]; }
  int64_t begin(int64_t d, int64_t part) const noexcept { return domains_->begin(d, part); }

 private:
  explicit GroupParts(const ShardDomains& domains) : domains_(&domains), digits_(domains.grid().digits()) {}
  const ShardDomains* domains_;
  std::vector<TileGrid::Digit> digits_;
  std::vector<std::vector<Run>> runs_;  // of each dimension
};

}  // namespace

std::optional<std::vector<int64_t>> group_ingress_bytes(const ShardDomains& source, const ShardDomains& destination,
                                                        const std::vector<PositionRange>& inside, int64_t itemsize) {
  const auto held = GroupParts::of(source, inside);
  const auto wanted = GroupParts::of(destination, inside);
  const std::vector<int64_t> firsts = first_positions(inside, source.grid().positions());
  if (!held || !wanted || firsts.empty() || source.grid().positions() != destination.grid().positions()) {
    return std::nullopt;
  }
  const int64_t rank = source.shape().size();
  Dims from(rank, 0);
  Dims to(rank, 0);
  std::vector<int64_t> bytes;
  bytes.reserve(firsts.size());
  for (const int64_t first : firsts) {
    if (bytes.size() % 256 == 0) check_interrupt();
    held->find_first(first, &from);
    wanted->find_first(first, &to);
    int64_t all = itemsize;
    int64_t both = itemsize;
    for (int64_t d = 0; d < rank; ++d) {
      int64_t length = 0;
      int64_t common = 0;
      auto own = held->runs(d).begin();
      for (const Run& run : wanted->runs(d)) {
        const int64_t begin = wanted->begin(d, to[d] + run.first);
        const int64_t end = wanted->begin(d, to[d] + run.first + run.count);
        length += end - begin;
        for (; own != held->runs(d).end(); ++own) {
          const int64_t own_end = held->begin(d, from[d] + own->first + own->count);
          common +=
              std::max<int64_t>(0, std::min(end, own_end) - std::max(begin, held->begin(d, from[d] + own->first)));
          if (own_end > end) break;  // it may extend into the next run
        }
      }
      all *= length;
      both *= common;
    }
    bytes.push_back(all - both);
  }
  return bytes;
}

std::vector<int64_t> group_ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_groups,
                                         const ShardDomains& destination,
                                         const std::vector<int64_t>& destination_groups, int64_t groups,
                                         int64_t itemsize) {
  if (source.shape() != destination.shape()) {
    throw_error("group_ingress_bytes: source and destination differ in shape; expected equal ones, got {} and {}",
                to_string(source.shape()), to_string(destination.shape()));
  }
  const auto held = tiles_of(source, source_groups, groups, "source");
  const auto wanted = tiles_of(destination, destination_groups, groups, "destination");
  std::vector<int64_t> bytes(static_cast<size_t>(groups), 0);
  for (size_t group = 0; group < bytes.size(); ++group) {
    if (std::cmp_equal(held[group].size(), source.grid().tiles())) continue;  // it holds everything
    int64_t elements = 0;
    for (const TileId tile : wanted[group]) {
      check_interrupt();
      const IndexDomain box = destination.domain(tile);
      if (box.volume() > 0) elements += box.volume() - elements_in(box, source, held[group]);
    }
    bytes[group] = elements * itemsize;
  }
  return bytes;
}

}  // namespace artifex_devices::planner
