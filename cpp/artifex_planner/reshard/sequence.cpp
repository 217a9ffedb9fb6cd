// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/sequence.h"

#include <algorithm>
#include <array>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/partition/ingress_totals.h"

namespace artifex_devices::planner {
namespace {

constexpr std::string_view kSequenceOperation = "plan_reshard";
constexpr int64_t kMostBytes = int64_t{1} << 58;
constexpr size_t kMostAxes = 63;  // 2^63 positions

/// Both ends over the same axes.
struct CommonAxes {
  std::vector<SubAxis> axes;
  AxesByDimension source;
  AxesByDimension destination;
};

/// Boundaries of axes: strides of positions, major to minor, the size of the mesh first and 1 last.
std::vector<int64_t> strides_of(const AbstractMesh& mesh) {
  std::vector<int64_t> strides{mesh.size()};
  for (const int64_t size : mesh.axis_sizes()) {
    if (size > 1) strides.push_back(strides.back() / size);
  }
  return strides;
}

void append_primes(int64_t size, std::vector<int64_t>* primes) {
  for (int64_t factor = 2; factor * factor <= size; ++factor) {
    for (; size % factor == 0; size /= factor) primes->push_back(factor);
  }
  if (size > 1) primes->push_back(size);
}

AxesByDimension layout_of(const ReshardEnd& end, const std::vector<SubAxis>& axes, int64_t rank) {
  const AbstractMesh& mesh = end.mesh;
  AxesByDimension layout(static_cast<size_t>(rank));
  for (int64_t d = 0; d < end.spec.rank(); ++d) {
    for (const AxisName& name : end.spec.entries()[static_cast<size_t>(d)].axes) {
      const int64_t at = mesh.find(name).value();
      int64_t stride = 1;
      for (int64_t i = at + 1; i < mesh.rank(); ++i) stride *= mesh.axis_sizes()[i];
      const int64_t size = mesh.axis_sizes()[at];
      for (size_t axis = 0; axis < axes.size(); ++axis) {
        const int64_t own = axes[axis].position_stride;
        if (own >= stride && own < stride * size) layout[static_cast<size_t>(d)].push_back(static_cast<int>(axis));
      }
    }
  }
  return layout;
}

/// "x", or "x.1" where the axis was factored; by the source's names.
void label_axes(const AbstractMesh& mesh, std::vector<SubAxis>* axes) {
  int64_t stride = mesh.size();
  for (int64_t i = 0; i < mesh.rank(); ++i) {
    const int64_t outer = stride;
    stride /= mesh.axis_sizes()[i];
    std::vector<SubAxis*> parts;
    for (SubAxis& axis : *axes) {
      if (axis.position_stride >= stride && axis.position_stride < outer) parts.push_back(&axis);
    }
    const std::string& name = mesh.axis_names()[static_cast<size_t>(i)].text();
    for (size_t part = 0; part < parts.size(); ++part) {
      parts[part]->label = parts.size() == 1 ? name : fmt::format("{}.{}", name, part);
    }
  }
}

CommonAxes common_axes(const ReshardEnd& source, const ReshardEnd& destination, int64_t rank) {
  std::vector<int64_t> strides = strides_of(source.mesh);
  const std::vector<int64_t> others = strides_of(destination.mesh);
  if (strides.front() != others.front()) {
    throw_error("{}: no sequence of collectives leads from {} devices to {}; expected equally many; use direct copies",
                kSequenceOperation, strides.front(), others.front());
  }
  strides.insert(strides.end(), others.begin(), others.end());
  std::ranges::sort(strides, std::greater<>());
  strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
  CommonAxes common;
  for (size_t i = 1; i < strides.size(); ++i) {
    if (strides[i - 1] % strides[i] != 0) {
      throw_error(
          "{}: the meshes ({}) and ({}) have no common factors; expected axes that can be taken apart into the same "
          "ones, as 8 and 2 x 4; use direct copies",
          kSequenceOperation, source.mesh.axes_text(), destination.mesh.axes_text());
    }
    std::vector<int64_t> primes;
    append_primes(strides[i - 1] / strides[i], &primes);
    int64_t stride = strides[i - 1];
    for (const int64_t prime : primes) {
      stride /= prime;
      common.axes.push_back({"", prime, stride});
    }
  }
  label_axes(source.mesh, &common.axes);
  common.source = layout_of(source, common.axes, rank);
  common.destination = layout_of(destination, common.axes, rank);
  return common;
}

/// Axes that are adjacent at both ends, joined.
struct Merged {
  std::vector<std::vector<int>> members;
  std::vector<int64_t> sizes;
  AxesByDimension source;
  AxesByDimension destination;
};

Merged merge(const CommonAxes& common) {
  const size_t count = common.axes.size();
  // The next axis inwards after each axis, at each end; axes that shard nothing have none.
  const auto followers = [&](const AxesByDimension& layout) {
    std::vector<int> next(count, -1);
    for (const auto& axes : layout) {
      for (size_t i = 0; i + 1 < axes.size(); ++i) next[static_cast<size_t>(axes[i])] = axes[i + 1];
    }
    return next;
  };
  const auto uses = [&](const AxesByDimension& layout) {
    std::vector<bool> used(count, false);
    for (const auto& axes : layout) {
      for (const int axis : axes) used[static_cast<size_t>(axis)] = true;
    }
    return used;
  };
  const std::vector<int> after[2] = {followers(common.source), followers(common.destination)};
  const std::vector<bool> used[2] = {uses(common.source), uses(common.destination)};
  const auto stay_together = [&](int a, int b) {
    const auto i = static_cast<size_t>(a);
    const auto j = static_cast<size_t>(b);
    for (size_t end = 0; end < 2; ++end) {
      const bool free = !used[end][i] && !used[end][j];
      if (!free && after[end][i] != b) return false;
    }
    return used[0][i] || used[1][i];
  };
  std::vector<bool> has_leader(count, false);
  std::vector<int> next(count, -1);
  for (size_t i = 0; i < count; ++i) {
    if (!used[0][i] && !used[1][i]) has_leader[i] = true;  // in neither end
    for (const auto& end : after) {
      const int b = end[i];
      if (b >= 0 && stay_together(static_cast<int>(i), b)) {
        next[i] = b;
        has_leader[static_cast<size_t>(b)] = true;
      }
    }
  }
  Merged merged;
  std::vector<int> leads(count, -1);
  for (size_t i = 0; i < count; ++i) {
    if (has_leader[i]) continue;
    leads[i] = static_cast<int>(merged.members.size());
    merged.members.emplace_back();
    int64_t size = 1;
    for (auto axis = static_cast<int>(i); axis >= 0; axis = next[static_cast<size_t>(axis)]) {
      merged.members.back().push_back(axis);
      size *= common.axes[static_cast<size_t>(axis)].size;
    }
    merged.sizes.push_back(size);
  }
  const auto translate = [&](const AxesByDimension& layout) {
    AxesByDimension result;
    for (const auto& axes : layout) {
      result.emplace_back();
      for (const int axis : axes) {
        if (leads[static_cast<size_t>(axis)] >= 0) result.back().push_back(leads[static_cast<size_t>(axis)]);
      }
    }
    return result;
  };
  merged.source = translate(common.source);
  merged.destination = translate(common.destination);
  return merged;
}

ReshardPath unmerge(const ReshardPath& path, const Merged& merged) {
  ReshardPath result{{}, path.bytes_in};
  for (const AxesByDimension& layout : path.layouts) {
    AxesByDimension& whole = result.layouts.emplace_back();
    for (const auto& axes : layout) {
      auto& all = whole.emplace_back();
      for (const int axis : axes) {
        const auto& members = merged.members[static_cast<size_t>(axis)];
        all.insert(all.end(), members.begin(), members.end());
      }
    }
  }
  return result;
}

bool begins_with(const std::vector<int>& longer, const std::vector<int>& shorter) {
  return longer.size() >= shorter.size() && std::equal(shorter.begin(), shorter.end(), longer.begin());
}

/// -1: each dimension of `after` lengthens that of `before` (slices); 1: the reverse (gathers); 0: neither.
int direction(const AxesByDimension& before, const AxesByDimension& after) {
  bool slices = true;
  bool gathers = true;
  for (size_t d = 0; d < before.size(); ++d) {
    slices = slices && begins_with(after[d], before[d]);
    gathers = gathers && begins_with(before[d], after[d]);
  }
  return slices ? -1 : gathers ? 1 : 0;
}

/// Successive slices are joined to one for each dimension; so are gathers.
ReshardPath coalesce(const ReshardPath& path) {
  ReshardPath result{{path.layouts.front()}, path.bytes_in};
  for (size_t i = 1; i < path.layouts.size();) {
    const int kind = direction(path.layouts[i - 1], path.layouts[i]);
    size_t end = i;
    while (kind != 0 && end + 1 < path.layouts.size() && direction(path.layouts[end], path.layouts[end + 1]) == kind)
      ++end;
    for (size_t d = 0; kind != 0 && d < path.layouts[end].size(); ++d) {
      if (result.layouts.back()[d] == path.layouts[end][d]) continue;
      AxesByDimension next = result.layouts.back();
      next[d] = path.layouts[end][d];
      result.layouts.push_back(std::move(next));
    }
    if (kind == 0) result.layouts.push_back(path.layouts[end]);
    i = end + 1;
  }
  return result;
}

ReshardStep describe_step(const ReshardSpace& space, const AxesByDimension& before, const AxesByDimension& after,
                          int64_t positions) {
  ReshardStep step;
  step.shard_bytes = space.shard_bytes(before).value();
  step.shard_bytes_after = space.shard_bytes(after).value();
  step.bytes_in = move_bytes(space, before, after);
  const auto moved = [&](const std::vector<int>& longer, const std::vector<int>& shorter) {
    step.axes.assign(longer.begin() + static_cast<std::ptrdiff_t>(shorter.size()), longer.end());
    for (const int64_t axis : step.axes) step.group *= space.sizes[static_cast<size_t>(axis)];
  };
  const int kind = direction(before, after);
  step.move = kind < 0                        ? ReshardMove::kSlice
              : kind > 0                      ? ReshardMove::kAllGather
              : exchanged_axes(before, after) ? ReshardMove::kAllToAll
                                              : ReshardMove::kPermute;
  if (step.move == ReshardMove::kPermute) {
    step.group = positions;
    return step;
  }
  for (size_t d = 0; d < before.size(); ++d) {
    if (before[d].size() > after[d].size()) {
      step.from_dimension = static_cast<int64_t>(d);
      moved(before[d], after[d]);
    } else if (before[d].size() < after[d].size()) {
      step.to_dimension = static_cast<int64_t>(d);
      if (step.move == ReshardMove::kSlice) moved(after[d], before[d]);
    }
  }
  return step;
}

TileGrid grid_of(const std::vector<SubAxis>& axes, const AxesByDimension& layout) {
  std::vector<AxisName> names;
  Dims sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    names.emplace_back(std::to_string(i));
    sizes.push_back(axes[i].size);
  }
  std::vector<SpecEntry> entries;
  for (const auto& run : layout) {
    std::vector<AxisName> of_dimension;
    for (const int axis : run) of_dimension.push_back(names[static_cast<size_t>(axis)]);
    entries.emplace_back(std::move(of_dimension));
  }
  return TileGrid(AbstractMesh(std::move(names), std::move(sizes)), PartitionSpec(std::move(entries)));
}

int64_t peak_of(const ReshardSpace& space, const ReshardPath& path) {
  int64_t peak = space.source_bytes;
  for (size_t i = 1; i < path.layouts.size(); ++i) {
    peak = std::max(peak, space.held(space.shard_bytes(path.layouts[i - 1]).value(),
                                     space.shard_bytes(path.layouts[i]).value(), i == 1));
  }
  return peak;
}

int64_t most_ingress(const TileGrid& from, const TileGrid& to, const Dims& shape, int64_t itemsize) {
  const ShardDomains::Names names{.operation = kSequenceOperation};
  return ingress_totals(ShardDomains(from, shape, Uneven::kError, names),
                        ShardDomains(to, shape, Uneven::kError, names), itemsize, kSequenceOperation)
      .most_bytes;
}

struct Found {
  ReshardPath path;
  bool is_cheapest = false;
};

/// The cheapest path within the memory limit; nothing where none was found.
std::optional<Found> cheapest_path(const ReshardSpace& space, const CommonAxes& common, int64_t lower_bound,
                                   const SearchLimits& limits) {
  std::optional<Found> best;
  const auto offer = [&](ReshardPath path, bool is_cheapest) {
    path = coalesce(path);
    if (space.memory_limit && peak_of(space, path) > *space.memory_limit) return;
    const auto rank = [](const ReshardPath& p) { return std::pair(p.bytes_in, p.layouts.size()); };
    if (!best || rank(path) < rank(best->path)) best = Found{std::move(path), false};
    best->is_cheapest = best->is_cheapest || is_cheapest || best->path.bytes_in == lower_bound;
  };
  offer(safe_path(space, common.source, common.destination), false);
  if (best && best->is_cheapest) return best;

  const auto limit = [&] { return best ? best->path.bytes_in : INT64_MAX / 4; };
  const Merged merged = merge(common);
  ReshardSpace coarse = space;
  coarse.sizes = merged.sizes;
  if (const auto found = search_reshards(coarse, merged.source, merged.destination, limit(), limits); found.path) {
    offer(unmerge(*found.path, merged), false);
  }
  if (best && best->is_cheapest) return best;
  const ReshardSearchResult fine = search_reshards(space, common.source, common.destination, limit(), limits);
  if (fine.path) offer(*fine.path, fine.is_complete);
  if (best) best->is_cheapest = best->is_cheapest || fine.is_complete;
  return best;
}

void check_end(const ReshardEnd& end) {
  for (const SpecEntry& entry : end.spec.entries()) {
    if (entry.kind == SpecEntry::Kind::kUnconstrained) {
      throw_error(
          "{}: {} leaves a dimension UNCONSTRAINED; expected None or mesh axes for each dimension; replace UNCONSTRAINED",
          kSequenceOperation, end.spec.to_string());
    }
  }
  end.spec.check(end.mesh, kSequenceOperation);
}

}  // namespace

ReshardSequence make_reshard_sequence(const Dims& shape, int64_t itemsize, const ReshardEnd& source,
                                      const ReshardEnd& destination, const SequenceOptions& options) {
  check_end(source);
  check_end(destination);
  const TileGrid from(source.mesh, source.spec);
  const TileGrid to(destination.mesh, destination.spec);
  const ShardDomains from_domains(from, shape, Uneven::kError, {kSequenceOperation, &source.spec, &source.mesh});
  const ShardDomains to_domains(to, shape, Uneven::kError, {kSequenceOperation, &destination.spec, &destination.mesh});
  const auto bytes = checked_mul(checked_product(shape, kSequenceOperation), itemsize);
  if (itemsize < 1 || !bytes || *bytes > kMostBytes) {
    throw_error(
        "{}: shape {} times itemsize {} is out of range; expected at least 1 byte per element and at most 2**58 bytes in all",
        kSequenceOperation, to_string(shape), itemsize);
  }
  const CommonAxes common = common_axes(source, destination, shape.size());
  if (common.axes.size() > kMostAxes)
    throw_error("{}: the mesh has {} prime factors; expected fewer", kSequenceOperation, kMostAxes);

  ReshardSpace space{shape, *bytes, {}, 0, 0, options.memory_limit};
  for (const SubAxis& axis : common.axes) space.sizes.push_back(axis.size);
  space.source_bytes = space.shard_bytes(common.source).value();
  space.largest_shard = std::max(space.source_bytes, space.shard_bytes(common.destination).value());

  ReshardSequence sequence;
  sequence.axes = common.axes;
  sequence.lower_bound = most_ingress(from, to, shape, itemsize);
  std::optional<Found> found = cheapest_path(space, common, sequence.lower_bound, options.search);
  if (!found) {
    ReshardSpace free = space;
    free.memory_limit.reset();
    const Found least = cheapest_path(free, common, sequence.lower_bound, options.search).value();
    throw_error(
        "{}: memory_limit is {} bytes; expected enough for a sequence of collectives on each device: {} bytes for the "
        "sequence that moves least, including {} of the source's shard; raise the limit or use more devices",
        kSequenceOperation, *options.memory_limit, peak_of(free, least.path), space.source_bytes);
  }
  const ReshardPath& path = found->path;
  sequence.is_cheapest = found->is_cheapest;
  sequence.bytes_in = path.bytes_in;
  sequence.peak_bytes = peak_of(space, path);
  for (size_t i = 0; i < path.layouts.size(); ++i) {
    sequence.grids.push_back(grid_of(sequence.axes, path.layouts[i]));
    if (i > 0) sequence.steps.push_back(describe_step(space, path.layouts[i - 1], path.layouts[i], from.positions()));
  }
  return sequence;
}

}  // namespace artifex_devices::planner
