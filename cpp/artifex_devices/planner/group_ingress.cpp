// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/planner/group_ingress.h"

#include <algorithm>
#include <utility>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/interrupt.h"

namespace artifex_devices {
namespace {

/// The tiles of each group, sorted, each once.
std::vector<std::vector<int64_t>> tiles_of(const ShardDomains& domains, const std::vector<int64_t>& group_of,
                                           int64_t groups, std::string_view which) {
  const std::vector<int64_t> tiles = domains.grid().tiles_by_position();
  if (group_of.size() != tiles.size()) {
    fail("group_ingress_bytes: {} groups are given for {} positions of the {}; expected one each", group_of.size(),
         tiles.size(), which);
  }
  std::vector<std::vector<int64_t>> result(static_cast<size_t>(groups));
  for (size_t i = 0; i < tiles.size(); ++i) {
    if (group_of[i] < 0 || group_of[i] >= groups) {
      fail("group_ingress_bytes: position {} of the {} is in group {}; expected 0 to {}", i, which, group_of[i],
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

/// Elements of `box` that lie in tiles of `held`. Looks at the tiles that the group has or at those under the box,
/// whichever are fewer.
int64_t elements_in(const IndexDomain& box, const ShardDomains& source, const std::vector<int64_t>& held) {
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
    for (const int64_t tile : held) {
      if (const auto common = intersect(box, source.domain(tile))) elements += common->volume();
    }
    return elements;
  }
  Dims cut = first;
  while (true) {
    int64_t tile = 0;
    for (int64_t d = 0; d < source.grid().parts().size(); ++d) tile = tile * source.grid().parts(d) + cut[d];
    if (std::ranges::binary_search(held, tile)) elements += intersect(box, source.domain(tile)).value().volume();
    int64_t d = box.rank() - 1;
    for (; d >= 0 && cut[d] == last[d]; --d) cut[d] = first[d];
    if (d < 0) return elements;
    ++cut[d];
  }
}

}  // namespace

std::vector<int64_t> group_ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_groups,
                                         const ShardDomains& destination,
                                         const std::vector<int64_t>& destination_groups, int64_t groups,
                                         int64_t itemsize) {
  if (source.shape() != destination.shape()) {
    fail("group_ingress_bytes: source and destination differ in shape; expected equal ones, got {} and {}",
         to_string(source.shape()), to_string(destination.shape()));
  }
  const auto held = tiles_of(source, source_groups, groups, "source");
  const auto wanted = tiles_of(destination, destination_groups, groups, "destination");
  std::vector<int64_t> bytes(static_cast<size_t>(groups), 0);
  for (size_t group = 0; group < bytes.size(); ++group) {
    if (std::cmp_equal(held[group].size(), source.grid().tiles())) continue;  // it holds everything
    int64_t elements = 0;
    for (const int64_t tile : wanted[group]) {
      check_interrupt();
      const IndexDomain box = destination.domain(tile);
      if (box.volume() > 0) elements += box.volume() - elements_in(box, source, held[group]);
    }
    bytes[group] = elements * itemsize;
  }
  return bytes;
}

}  // namespace artifex_devices
