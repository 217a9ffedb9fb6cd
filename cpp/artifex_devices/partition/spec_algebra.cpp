// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/spec_algebra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using Axes = std::vector<AxisName>;

int64_t axis_size(const AbstractMesh& mesh, AxisName name) {
  const auto place = mesh.find(name);
  return place ? mesh.axis_sizes()[*place] : 1;
}

int64_t parts_over(const AbstractMesh& mesh, const Axes& axes) {
  int64_t parts = 1;
  for (const AxisName name : axes) parts *= axis_size(mesh, name);
  return parts;
}

int64_t element_count(std::span<const int64_t> sizes) {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  return total;
}

/// As Python shows a tuple of names: ('x', 'y').
std::string axes_text(const Axes& axes) {
  std::vector<std::string> names;
  for (const AxisName name : axes) names.push_back(name.repr());
  return fmt::format("({}{})", fmt::join(names, ", "), names.size() == 1 ? "," : "");
}

std::string operands_text(const std::vector<SpecOperand>& operands) {
  std::vector<std::string> texts;
  for (const SpecOperand& operand : operands) {
    texts.push_back(to_string(operand.shape) + (operand.has_spec ? " with " + operand.spec.to_string() : ""));
  }
  return fmt::format("{}", fmt::join(texts, " and "));
}

bool share_an_axis(const Axes& a, const Axes& b) {
  return std::ranges::any_of(a, [&](AxisName name) { return std::ranges::find(b, name) != b.end(); });
}

}  // namespace

ShardedAxes sharded_axes(const PartitionSpec& spec, int64_t rank) {
  ShardedAxes result(static_cast<size_t>(rank));
  for (size_t d = 0; d < std::min(result.size(), spec.entries().size()); ++d) result[d] = spec.entries()[d].axes;
  return result;
}

PartitionSpec to_partition_spec(const ShardedAxes& axes) {
  std::vector<SpecEntry> entries;
  for (const Axes& names : axes) entries.emplace_back(names);
  while (!entries.empty() && entries.back().axes.empty()) entries.pop_back();
  return PartitionSpec(std::move(entries));
}

bool any_explicit(const AbstractMesh& mesh, const std::vector<AxisName>& axes) {
  return std::ranges::any_of(axes, [&](AxisName name) {
    const auto place = mesh.find(name);
    return place && mesh.axis_types()[*place] == AxisType::kExplicit;
  });
}

ShardedAxes broadcast_specs(std::string_view operation, const AbstractMesh& mesh, const Dims& shape,
                            const std::vector<SpecOperand>& operands) {
  ShardedAxes result(static_cast<size_t>(shape.size()));
  std::vector<std::pair<size_t, Axes>> requested;
  for (const SpecOperand& operand : operands) {
    if (!operand.is_on_mesh) continue;
    const ShardedAxes own = sharded_axes(operand.spec, operand.shape.size());
    const int64_t offset = shape.size() - operand.shape.size();
    for (int64_t d = 0; d < operand.shape.size(); ++d) {
      const Axes& axes = own[d];
      if (axes.empty() || operand.shape[d] != shape[offset + d]) continue;
      const auto place = static_cast<size_t>(offset + d);
      requested.emplace_back(place, axes);
      const bool is_free = std::ranges::none_of(result, [&](const Axes& used) { return share_an_axis(used, axes); });
      if (result[place].empty() && is_free) result[place] = axes;
    }
  }
  for (const auto& [place, axes] : requested) {
    if (result[place] == axes || !any_explicit(mesh, axes)) continue;
    throw ShardingTypeError(fmt::format(
        "{}: dimension {} of the result would be sharded over {} and over {} at once; expected operands that agree on "
        "Explicit axes, got {}; move one first: ad.reshard(y, x.sharding)",
        operation, place, result[place].empty() ? "no axis" : axes_text(result[place]), axes_text(axes),
        operands_text(operands)));
  }
  return result;
}

ShardedAxes contract_specs(std::string_view operation, const AbstractMesh& mesh,
                           const std::vector<SpecOperand>& operands, const std::vector<std::vector<int64_t>>& labels,
                           const Dims& sizes, int64_t out_rank) {
  struct Request {
    int64_t nbytes;
    Axes axes;
  };
  const auto name_of = [&](int64_t label) {
    return label < out_rank ? fmt::format("dimension {} of the result", label)
                            : std::string("a dimension that is summed over");
  };
  std::vector<std::vector<Request>> requests(sizes.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_on_mesh) continue;
    const ShardedAxes own = sharded_axes(operands[i].spec, operands[i].shape.size());
    for (size_t d = 0; d < own.size(); ++d) {
      const int64_t label = labels[i][d];
      if (own[d].empty() || operands[i].shape[static_cast<int64_t>(d)] != sizes[label]) continue;
      requests[label].push_back({operands[i].nbytes, own[d]});
    }
  }
  ShardedAxes result(requests.size());
  std::map<int32_t, int64_t> owner;  // by axis: the label that it shards
  std::vector<std::string> problems;
  for (int64_t label = 0; label < sizes.size(); ++label) {
    std::vector<Request>& wanted = requests[label];
    std::set<std::string> texts;
    for (const Request& request : wanted) texts.insert(axes_text(request.axes));
    if (texts.size() > 1 && std::ranges::any_of(wanted, [&](const Request& r) { return any_explicit(mesh, r.axes); })) {
      problems.push_back(fmt::format("{} is sharded over {}", name_of(label), fmt::join(texts, " and over ")));
    }
    std::ranges::stable_sort(wanted, std::ranges::greater(), &Request::nbytes);
    for (const Request& request : wanted) {
      std::set<int64_t> rivals;
      for (const AxisName name : request.axes) {
        if (const auto found = owner.find(name.id()); found != owner.end()) rivals.insert(found->second);
      }
      if (rivals.empty()) {
        result[label] = request.axes;
        for (const AxisName name : request.axes) owner[name.id()] = label;
        break;
      }
      if (label < out_rank && any_explicit(mesh, request.axes)) {
        std::vector<std::string> names;
        for (const int64_t rival : rivals) names.push_back(name_of(rival));
        names.push_back(name_of(label));
        problems.push_back(fmt::format("{} would shard {}", axes_text(request.axes), fmt::join(names, " and ")));
      }
    }
  }
  if (!problems.empty()) {
    throw ShardingTypeError(fmt::format(
        "{}: the operands disagree about Explicit axes: {}; expected each dimension sharded in one way and each axis "
        "in one dimension of the result, got {}; replicate one first: ad.reshard(y, "
        "ad.NamedSharding(y.sharding.mesh, ad.P()))",
        operation, fmt::join(problems, "; "), operands_text(operands)));
  }
  return result;
}

namespace {

/// Neighbouring dimensions, old and new, whose sizes have the same product. Dimensions of size 1 are in no group.
struct DimensionGroup {
  std::vector<int64_t> from;
  std::vector<int64_t> to;
};

/// The smallest groups. Example: (4, 1, 6) to (2, 2, 6) is {0} to {0, 1} and {2} to {2}.
std::vector<DimensionGroup> dimension_groups(const Dims& from, const Dims& to) {
  std::vector<DimensionGroup> groups;
  int64_t left = 1;
  int64_t right = 1;
  int64_t next = 0;
  for (int64_t d = 0; d < from.size(); ++d) {
    if (from[d] == 1) continue;
    if (left == right) {
      groups.emplace_back();
      left = right = 1;
    }
    groups.back().from.push_back(d);
    left *= from[d];
    for (; right < left; ++next) {
      if (to[next] == 1) continue;
      groups.back().to.push_back(next);
      right *= to[next];
    }
  }
  return groups;
}

/// Only the first dimension is sharded, with a short last part: elements stay where the new parts have the same length.
std::optional<ShardedAxes> regroup_uneven(const AbstractMesh& mesh, Uneven uneven, const ShardedAxes& axes,
                                          const Dims& from, const Dims& to) {
  const bool is_first_only =
      !axes[0].empty() && std::all_of(axes.begin() + 1, axes.end(), [](const Axes& names) { return names.empty(); });
  if (!is_first_only || uneven == Uneven::kError) return std::nullopt;
  const int64_t parts = parts_over(mesh, axes[0]);
  const auto length = [&](const Dims& sizes) {
    return (sizes[0] + parts - 1) / parts * element_count(sizes.span().subspan(1));
  };
  if (length(from) != length(to)) return std::nullopt;
  ShardedAxes result(static_cast<size_t>(to.size()));
  result[0] = axes[0];
  return result;
}

/// The axes of the new dimensions of one group in which each device has the elements that it had, if there are any.
std::optional<ShardedAxes> regroup(const AbstractMesh& mesh, Uneven uneven, const ShardedAxes& axes, const Dims& from,
                                   const Dims& to) {
  if (from.size() == 1 && to.size() == 1) return axes;  // the same dimension, however it is sharded
  Axes left_over;
  bool is_closed = false;    // the dimensions that follow must not be divided
  bool has_no_axes = false;  // one of the dimensions so far
  for (size_t d = 0; d < axes.size(); ++d) {
    const int64_t size = from[static_cast<int64_t>(d)];
    const int64_t parts = parts_over(mesh, axes[d]);
    has_no_axes = has_no_axes || axes[d].empty();
    const bool stays = size % parts == 0 && (!is_closed || (parts == 1 && !has_no_axes));
    if (!axes[d].empty() && !stays) return regroup_uneven(mesh, uneven, axes, from, to);
    left_over.insert(left_over.end(), axes[d].begin(), axes[d].end());
    is_closed = is_closed || size / parts > 1;
  }
  ShardedAxes result;
  size_t next = 0;
  for (int64_t size : to) {
    Axes& own = result.emplace_back();
    while (next < left_over.size() && size > 1 && size % axis_size(mesh, left_over[next]) == 0) {
      size /= axis_size(mesh, left_over[next]);
      own.push_back(left_over[next++]);
    }
    if (next < left_over.size() && size > 1) return std::nullopt;
  }
  for (; next < left_over.size(); ++next) {
    if (axis_size(mesh, left_over[next]) > 1) return std::nullopt;
    result.back().push_back(left_over[next]);
  }
  return result;
}

/// The axes without Auto axes of size 1, which shard nothing.
ShardedAxes without_idle(const AbstractMesh& mesh, ShardedAxes axes) {
  for (Axes& names : axes) {
    std::erase_if(names, [&](AxisName name) { return axis_size(mesh, name) == 1 && !any_explicit(mesh, {name}); });
  }
  return axes;
}

}  // namespace

ShardedAxes reshape_spec(const AbstractMesh& mesh, Uneven uneven, const PartitionSpec& spec, const Dims& from,
                         const Dims& to) {
  const ShardedAxes axes = sharded_axes(spec, from.size());
  ShardedAxes result(static_cast<size_t>(to.size()));
  if (std::ranges::all_of(axes, [](const Axes& names) { return names.empty(); })) return result;
  if (element_count(from.span()) == 0) {  // no device has an element: the leading dimensions that stay keep their axes
    for (int64_t d = 0; d < std::min(from.size(), to.size()) && from[d] == to[d]; ++d) {
      result[d] = axes[d];
    }
    return result;
  }
  std::vector<std::string> problems;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (parts_over(mesh, axes[d]) == 1 || from[static_cast<int64_t>(d)] != 1) continue;
    problems.push_back(fmt::format("dimension {} of size 1 is sharded over {}", d, axes_text(axes[d])));
  }
  for (const DimensionGroup& group : dimension_groups(from, to)) {
    ShardedAxes own;
    Dims old_sizes;
    Dims new_sizes;
    std::vector<std::string> texts;
    for (const int64_t d : group.from) {
      own.push_back(axes[d]);
      old_sizes.push_back(from[d]);
      if (!own.back().empty()) texts.push_back(fmt::format("dimension {} over {}", d, axes_text(own.back())));
    }
    if (texts.empty()) continue;
    for (const int64_t d : group.to) new_sizes.push_back(to[d]);
    auto found = regroup(mesh, uneven, own, old_sizes, new_sizes);
    if (!found) found = regroup(mesh, uneven, without_idle(mesh, own), old_sizes, new_sizes);
    if (!found) {
      problems.push_back(fmt::format("the group of dimensions [{}] of sizes [{}] becomes sizes [{}], and shards {}",
                                     fmt::join(group.from, ", "), fmt::join(old_sizes.span(), ", "),
                                     fmt::join(new_sizes.span(), ", "), fmt::join(texts, " and ")));
      continue;
    }
    for (size_t i = 0; i < group.to.size(); ++i) result[group.to[i]] = (*found)[i];
  }
  if (!problems.empty()) {
    throw ShardingTypeError(fmt::format(
        "reshape: the sharding does not carry over to the new shape: {}; expected groups of dimensions that are "
        "sharded from the first one on, got {} for {} to {}; replicate the Array first: ad.reshard(x, "
        "ad.NamedSharding(x.sharding.mesh, ad.P())), or reshape np.asarray(x)",
        fmt::join(problems, "; "), spec.to_string(), to_string(from), to_string(to)));
  }
  return result;
}

}  // namespace artifex_devices
