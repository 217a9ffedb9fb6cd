// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/xla_resharding.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

bool divides(const Dims& fewer, const Dims& more) {
  for (int64_t d = 0; d < fewer.size(); ++d) {
    if (more[d] % fewer[d] != 0) return false;
  }
  return true;
}

using Counts = std::vector<int64_t>;

/// Numbers of parts of the sharded dimensions, sorted.
Counts cuts_of(const Dims& parts) {
  Counts sharded;
  std::ranges::copy_if(parts, std::back_inserter(sharded), [](int64_t count) { return count > 1; });
  std::ranges::sort(sharded);
  return sharded;
}

int64_t tiles_of(const Dims& parts) { return checked_product(parts, "xla_gathers_everything"); }

/// Shards of the same size, where two dimensions change, or numbers of parts change places.
bool is_exchange(const Dims& from, const Dims& to) {
  if (tiles_of(from) != tiles_of(to)) return false;
  int changed = 0;
  for (int64_t d = 0; d < from.size(); ++d) changed += from[d] != to[d];
  return changed <= 2 || cuts_of(from) == cuts_of(to);
}

/// Without replicas after: all replicas shard one dimension that was not sharded, and then an exchange suffices.
bool slices_and_exchanges(int64_t devices, const Dims& from, const Dims& to) {
  if (tiles_of(to) != devices) return false;
  for (int64_t d = 0; d < from.size(); ++d) {
    if (from[d] > 1) continue;
    Dims sliced = from;
    sliced[d] = devices / tiles_of(from);
    if (is_exchange(sliced, to)) return true;
  }
  return false;
}

/// Without replicas before: some dimensions get fewer parts and others more, all stay sharded.
bool gathers_and_slices(int64_t devices, const Dims& from, const Dims& to) {
  if (tiles_of(from) != devices) return false;
  for (int64_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[d] && (from[d] == 1 || to[d] == 1)) return false;
  }
  return true;
}

}  // namespace

std::optional<bool> xla_gathers_everything(int64_t devices, const Dims& source_parts, const Dims& destination_parts) {
  if (devices < 1) throw_error("xla_gathers_everything: {} devices; expected 1 or more", devices);
  if (source_parts.size() != destination_parts.size()) {
    throw_error("xla_gathers_everything: parts of {} and {} dimensions; expected equally many", source_parts.size(),
                destination_parts.size());
  }
  for (const Dims* parts : {&source_parts, &destination_parts}) {
    if (std::ranges::any_of(*parts, [](int64_t count) { return count < 1; })) {
      throw_error("xla_gathers_everything: parts are {}; expected 1 or more of each dimension", to_string(*parts));
    }
  }
  if (divides(source_parts, destination_parts) || divides(destination_parts, source_parts)) return false;
  const Counts had = cuts_of(source_parts);
  const Counts wanted = cuts_of(destination_parts);
  const bool exchanges_and_gathers = std::ranges::includes(had, wanted);  // whole dimensions
  const bool gathers = !is_exchange(source_parts, destination_parts) && !exchanges_and_gathers &&
                       !slices_and_exchanges(devices, source_parts, destination_parts) &&
                       !gathers_and_slices(devices, source_parts, destination_parts);
  if (gathers) return true;
  for (int64_t d = 0; d < source_parts.size(); ++d) {
    const auto [fewer, more] = std::minmax({source_parts[d], destination_parts[d]});
    if (more % fewer != 0) return std::nullopt;
  }
  return false;
}

}  // namespace artifex_devices::planner
