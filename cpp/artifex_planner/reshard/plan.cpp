// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/reshard/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/partition/ingress_totals.h"
#include "artifex_devices/partition/reshard_check.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_planner/reshard/part_ingress.h"
#include "artifex_planner/reshard/placed_copies.h"
#include "artifex_planner/reshard/sequence.h"
#include "artifex_planner/reshard/xla_resharding.h"

namespace artifex_devices::planner {
namespace {

constexpr double kMostCopiesByDefault = 1 << 16;  // where collectives work too; takes 0.1 s
constexpr std::string_view kNoCluster =
    "plan_reshard: seconds are not known without a network; expected a cluster, got none; give cluster=, such as "
    "cluster.tpu('v5e', (4, 4)), or a mesh of a cluster's devices, or calibration= for this machine's own";

/// Both ends of a reshard, by position.
struct PlacedEnds {
  const Sharding& from;
  const Sharding& to;
  ShardDomains source;
  ShardDomains destination;
  std::vector<int64_t> devices_before;
  std::vector<int64_t> devices_after;
  bool same_devices = false;
  int64_t itemsize = 1;
  const Cluster* cluster = nullptr;
  const Efficiency* efficiency = nullptr;
};

void check_devices(const std::vector<int64_t>& devices, const Cluster& cluster) {
  const int64_t count = cluster.device_count();
  const auto found = std::ranges::find_if(devices, [&](int64_t id) { return id < 0 || id >= count; });
  if (found == devices.end()) return;
  throw_error(
      "{}: the mesh has device {}, but the cluster {} has ids 0 to {}; expected devices of the cluster; make the mesh of "
      "cluster.devices(), or use a larger cluster",
      kPlanReshard, *found, cluster.name(), count - 1);
}

void check_has_domains(const Sharding& sharding) {
  if (sharding.is_concrete() || sharding.is_abstract()) return;
  throw_error(
      "{}: {} leaves a dimension UNCONSTRAINED; expected None or mesh axes for each dimension; replace UNCONSTRAINED",
      kPlanReshard, sharding.to_string());
}

/// Estimated cost of a step, or the reason why it is unknown.
template <class F>
void set_price(PlannedReshardStep& step, const Cluster* cluster, F price) {
  if (cluster == nullptr) {
    step.why_no_price = kNoCluster;
    return;
  }
  try {
    step.price = price();
  } catch (const Unavailable& error) {
    step.why_no_price = error.what();
  }
}

const NamedSharding& named(const Sharding& sharding) {
  const auto* result = dynamic_cast<const NamedSharding*>(&sharding);
  if (result == nullptr) {
    throw_error(
        "{}: {} has no mesh; expected NamedShardings at both ends of a sequence of collectives; use direct copies",
        kPlanReshard, sharding.to_string());
  }
  return *result;
}

ReshardSequence sequence_between(const Dims& shape, const PlacedEnds& ends, std::optional<int64_t> memory_limit) {
  const NamedSharding& from = named(ends.from);
  const NamedSharding& to = named(ends.to);
  if (!ends.same_devices) {
    throw_error(
        "{}: the meshes have different devices, or the same in another order; expected equal ones for a sequence of "
        "collectives; use direct copies",
        kPlanReshard);
  }
  if (from.uneven() != Uneven::kError || to.uneven() != Uneven::kError) {
    throw_error(
        "{}: uneven shards have no sequence of collectives; expected shardings without uneven=; use direct copies",
        kPlanReshard);
  }
  if (from.memory_kind() != to.memory_kind()) {
    throw_error(
        "{}: the ends are in memory of two kinds, {} and {}; expected one for a sequence of collectives; use direct "
        "copies",
        kPlanReshard, to_string(from.memory_kind()), to_string(to.memory_kind()));
  }
  return make_reshard_sequence(shape, ends.itemsize, {from.abstract_mesh(), from.spec()},
                               {to.abstract_mesh(), to.spec()}, {.memory_limit = memory_limit});
}

ShardDomains domains_before(const ReshardSequence& sequence, size_t step, const Dims& shape) {
  return ShardDomains(sequence.grids[step], shape, Uneven::kError, {.operation = kPlanReshard});
}

/// Bytes that each position receives in all steps of a sequence.
std::vector<int64_t> received(const ReshardSequence& sequence, const Dims& shape, int64_t itemsize) {
  std::vector<int64_t> positions(static_cast<size_t>(sequence.grids.front().positions()));
  std::iota(positions.begin(), positions.end(), int64_t{0});
  std::vector<int64_t> bytes(positions.size(), 0);
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    const std::vector<int64_t> in = ingress_bytes(domains_before(sequence, i, shape), positions,
                                                  domains_before(sequence, i + 1, shape), positions, itemsize);
    std::ranges::transform(bytes, in, bytes.begin(), std::plus<>());
  }
  return bytes;
}

std::string_view axis_of(std::string_view label) { return label.substr(0, std::min(label.rfind('.'), label.size())); }

/// Labels of sub-axes; all parts of an axis that stand together, major to minor, are written as the axis.
std::string axes_text(const std::vector<int64_t>& numbers, const std::vector<SubAxis>& axes) {
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < numbers.size();) {
    const std::string& label = axes[static_cast<size_t>(numbers[i])].label;
    const std::string_view name = axis_of(label);
    std::vector<int64_t> parts;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axis_of(axes[axis].label) == name) parts.push_back(static_cast<int64_t>(axis));
    }
    const bool is_all = name.size() < label.size() && parts.size() <= numbers.size() - i &&
                        std::equal(parts.begin(), parts.end(), numbers.begin() + static_cast<std::ptrdiff_t>(i));
    texts.push_back(is_all ? name : std::string_view(label));
    i += is_all ? parts.size() : 1;
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string text_of(const ReshardStep& step, const std::vector<SubAxis>& axes) {
  const std::string names = axes_text(step.axes, axes);
  switch (step.move) {
    case ReshardMove::kSlice:
      return fmt::format("slice dimension {} by {}", step.to_dimension, names);
    case ReshardMove::kAllToAll:
      return fmt::format("all-to-all over {}: dimension {} to {}", names, step.from_dimension, step.to_dimension);
    case ReshardMove::kAllGather:
      return fmt::format("all-gather dimension {} over {}", step.from_dimension, names);
    case ReshardMove::kPermute:
      break;
  }
  return "permute shards";
}

PlannedStrategy plan_collectives(const Dims& shape, const PlacedEnds& ends, std::optional<int64_t> memory_limit) {
  const auto sequence = std::make_shared<const ReshardSequence>(sequence_between(shape, ends, memory_limit));
  PlannedStrategy plan;
  plan.strategy = ReshardStrategy::kCollectives;
  plan.peak_bytes = sequence->peak_bytes;
  plan.is_cheapest = sequence->is_cheapest;
  const auto devices = static_cast<int64_t>(ends.devices_after.size());
  int64_t network = 0;
  int64_t busiest = 0;
  int unequal_steps = 0;  // in which some device receives less than the busiest one
  for (size_t i = 0; i < sequence->steps.size(); ++i) {
    const ReshardStep& step = sequence->steps[i];
    const IngressTotals totals = ingress_totals(domains_before(*sequence, i, shape),
                                                domains_before(*sequence, i + 1, shape), ends.itemsize, kPlanReshard);
    PlannedReshardStep planned{to_string(step.move),
                               text_of(step, sequence->axes),
                               step.group,
                               totals.bytes,
                               step.bytes_in,
                               step.shard_bytes,
                               step.shard_bytes_after,
                               {},
                               {}};
    if (ends.cluster != nullptr && step.move == ReshardMove::kPermute) {
      const std::vector<DeviceMessage> messages = permute_messages(*sequence, i, ends.devices_before);
      network += bytes_by_link(*ends.cluster, messages)[static_cast<size_t>(ClusterLink::kNetwork)];
      set_price(planned, ends.cluster, [&] { return price_messages(*ends.cluster, messages, *ends.efficiency).price; });
    } else {
      if (ends.cluster != nullptr) network += network_bytes(*ends.cluster, *sequence, i, ends.devices_before);
      set_price(planned, ends.cluster,
                [&] { return price_step(*ends.cluster, *sequence, i, ends.devices_before, *ends.efficiency); });
    }
    plan.bytes_received += totals.bytes;
    busiest += totals.most_bytes;
    if (totals.bytes != totals.most_bytes * devices) ++unequal_steps;
    plan.steps.push_back(std::move(planned));
  }
  if (unequal_steps <= 1) plan.busiest_bytes = busiest;
  plan.bytes_copied = plan.bytes_received;
  if (ends.cluster == nullptr) {
    plan.bytes_by_link = {{"between devices", plan.bytes_received}};
  } else {
    plan.bytes_by_link = {{"same slice", plan.bytes_received - network}, {"network", network}};
  }
  plan.bytes_in = [sequence, shape, itemsize = ends.itemsize] { return received(*sequence, shape, itemsize); };
  return plan;
}

/// Cost of all copies at the same time. Copies between device and host memory also use the links between hosts and
/// chips.
TransferPrice price_copies(const PlacedEnds& ends, const std::vector<DeviceMessage>& messages) {
  TransferPrice price = price_messages(*ends.cluster, messages, *ends.efficiency).price;
  const bool from_device = ends.from.memory_kind() == MemoryKind::kDevice;
  if (from_device != (ends.to.memory_kind() == MemoryKind::kDevice)) {
    add_host_link(*ends.cluster, messages, from_device, *ends.efficiency, &price);
  }
  return price;
}

PlannedStrategy plan_copies(const Dims& shape, const PlacedEnds& ends, std::optional<int64_t> memory_limit,
                            double most) {
  const PlacedCopies placed = placed_copies(ends.from, ends.to, shape, ends.itemsize, ends.cluster, most);
  const DirectCopies& direct = placed.direct;
  if (memory_limit && direct.peak_bytes > *memory_limit) {
    throw_error(
        "{}: memory_limit is {} bytes; expected at least {} bytes for direct copies, on each device; raise the limit or "
        "use more devices",
        kPlanReshard, *memory_limit, direct.peak_bytes);
  }
  PlannedStrategy plan;
  plan.peak_bytes = direct.peak_bytes;
  plan.bytes_received = std::accumulate(direct.bytes_in.begin(), direct.bytes_in.end(), int64_t{0});
  plan.busiest_bytes = direct.bytes_in.empty() ? 0 : std::ranges::max(direct.bytes_in);
  plan.bytes_copied = direct.plan.bytes_copied();
  plan.bytes_in = [bytes = direct.bytes_in] { return bytes; };
  std::vector<DeviceMessage> messages;
  if (ends.cluster != nullptr) {
    messages = messages_of(direct, placed.source, placed.destination);
    const LinkBytes bytes = bytes_by_link(*ends.cluster, messages);
    constexpr std::array<std::string_view, kClusterLinks> kNames = {"same device", "same chip", "same slice",
                                                                    "network"};
    for (size_t i = 0; i < kNames.size(); ++i) plan.bytes_by_link.emplace_back(kNames[i], bytes[i]);
  } else {
    const std::array<int64_t, kLinks> bytes = direct.plan.bytes_by_link();
    constexpr std::array<std::string_view, kLinks> kNames = {"same device", "same memory", "other memory",
                                                             "other process", "other host"};
    for (size_t i = 0; i < kNames.size(); ++i) plan.bytes_by_link.emplace_back(kNames[i], bytes[i]);
  }
  if (direct.plan.copy_count() > 0) {
    PlannedReshardStep step{"copies",
                            fmt::format("{} direct copies", direct.plan.copy_count()),
                            ends.to.num_devices(),
                            plan.bytes_received,
                            *plan.busiest_bytes,
                            checked_product(ends.source.shard_shape(), kPlanReshard) * ends.itemsize,
                            checked_product(ends.destination.shard_shape(), kPlanReshard) * ends.itemsize,
                            {},
                            {}};
    set_price(step, ends.cluster, [&] { return price_copies(ends, messages); });
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

ReshardLowerBound lower_bound_of(const PlacedEnds& ends) {
  const IngressTotals totals = ends.same_devices
                                   ? ingress_totals(ends.source, ends.destination, ends.itemsize, kPlanReshard)
                                   : ingress_totals(ends.source, ends.devices_before, ends.destination,
                                                    ends.devices_after, ends.itemsize, kPlanReshard);
  ReshardLowerBound bound{totals.bytes, totals.most_bytes, {}, {}};
  if (ends.cluster == nullptr) return bound;
  const Cluster& cluster = *ends.cluster;
  const auto missing_bytes = [&](ClusterPart part) {
    return part_ingress_bytes(ends.source, ends.devices_before, ends.destination, ends.devices_after, cluster, part,
                              ends.itemsize);
  };
  // By number of the chip. If all chips have equally many links, only the busiest chip is listed.
  const auto chip_bytes = [&] {
    if (!chips_have_equal_links(cluster)) {
      const std::vector<int64_t> numbers =
          part_numbers(ends.devices_before, ends.devices_after, cluster, ClusterPart::kChip);
      const std::vector<int64_t> bytes = missing_bytes(ClusterPart::kChip);
      std::vector<int64_t> by_number(static_cast<size_t>(cluster.chip_count()), 0);
      for (size_t i = 0; i < bytes.size(); ++i) by_number[static_cast<size_t>(numbers[i])] = bytes[i];
      return by_number;
    }
    if (cluster.chip().devices_per_chip == 1) return std::vector<int64_t>{totals.most_bytes};
    return missing_bytes(ClusterPart::kChip);
  };
  bound.host_bytes = missing_bytes(ClusterPart::kHost);
  try {
    bound.seconds = least_seconds(cluster, chip_bytes(), missing_bytes(ClusterPart::kSlice));
  } catch (const Unavailable&) {  // a rate is not known
  }
  return bound;
}

Dims padded(const Dims& parts, int64_t rank) {
  Dims result = parts;
  result.resize(rank, 1);
  return result;
}

/// Sets whether XLA would gather everything, or why that is not known.
void set_xla_answer(PlannedReshard& planned, const PlacedEnds& ends) {
  const char* why = nullptr;
  if (!ends.same_devices) {
    why = "the ends have different devices, or the same in another order; expected the devices of one program in both";
  } else if (!ends.source.is_even() || !ends.destination.is_even()) {
    why = "shards are uneven; expected sizes that their axes divide";
  } else if (ends.from.memory_kind() != ends.to.memory_kind()) {
    why = "the ends are in memory of two kinds; expected one";
  } else {
    const int64_t rank = ends.source.shape().size();
    planned.xla_gathers = xla_gathers_everything(ends.from.num_devices(), padded(ends.from.grid().parts(), rank),
                                                 padded(ends.to.grid().parts(), rank));
    if (planned.xla_gathers) return;
    why =
        "a dimension goes from one number of parts to another, and neither divides the other; expected numbers that do, "
        "as powers of 2 always do";
  }
  planned.why_xla_is_not_known = fmt::format("{}: whether XLA gathers everything is not known: {}", kPlanReshard, why);
}

std::optional<double> seconds_of(const PlannedStrategy& plan) {
  double seconds = 0;
  for (const PlannedReshardStep& step : plan.steps) {
    if (!step.price) return {};
    seconds += step.price->expected.seconds();
  }
  return seconds;
}

bool prefers_copies(const PlannedStrategy& copies, const std::optional<PlannedStrategy>& collectives,
                    const Cluster* cluster) {
  if (cluster == nullptr || !collectives) return true;
  const std::optional<double> first = seconds_of(copies);
  const std::optional<double> second = seconds_of(*collectives);
  return !first || !second || *first <= *second;
}

/// A strategy, or the reason why it is impossible.
struct Attempt {
  std::optional<PlannedStrategy> plan;
  std::string why_not;
};

template <class F>
Attempt attempt(F plan) {
  try {
    return {plan(), ""};
  } catch (const InvalidArgument& error) {
    return {{}, error.what()};
  }
}

}  // namespace

PlannedReshard plan_reshard(const Dims& shape, int64_t itemsize, const Sharding& source, const Sharding& destination,
                            const ReshardRequest& request) {
  check_has_domains(source);
  check_has_domains(destination);
  PlannedReshard planned;
  planned.cluster = cluster_for(request.cluster, source, destination);
  const Cluster* cluster = planned.cluster.get();
  if (cluster == nullptr && (source.is_abstract() || destination.is_abstract())) {
    throw_error("{}: a mesh without devices has no network; expected a cluster; give cluster=, or a mesh of devices",
                kPlanReshard);
  }
  check_size(source, cluster);
  check_size(destination, cluster);
  const Efficiency efficiency = request.efficiency   ? *request.efficiency
                                : cluster != nullptr ? published_efficiency(*cluster)
                                                     : ideal_efficiency();
  PlacedEnds ends{source,
                  destination,
                  source.domains(shape, kPlanReshard),
                  destination.domains(shape, kPlanReshard),
                  device_ids(source),
                  device_ids(destination),
                  false,
                  itemsize,
                  cluster,
                  &efficiency};
  ends.same_devices = ends.devices_before == ends.devices_after;
  if (cluster != nullptr) {
    check_devices(ends.devices_before, *cluster);
    if (!ends.same_devices) check_devices(ends.devices_after, *cluster);
  }
  planned.lower_bound = lower_bound_of(ends);
  Attempt collectives = attempt([&] { return plan_collectives(shape, ends, request.memory_limit); });
  const bool all_copies = request.strategy == ReshardStrategy::kCopies || !collectives.plan || cluster == nullptr;
  Attempt copies = attempt(
      [&] { return plan_copies(shape, ends, request.memory_limit, all_copies ? kMostCopies : kMostCopiesByDefault); });
  const ReshardStrategy strategy = request.strategy.value_or(
      copies.plan && prefers_copies(*copies.plan, collectives.plan, cluster) ? ReshardStrategy::kCopies
                                                                             : ReshardStrategy::kCollectives);
  const bool takes_copies = strategy == ReshardStrategy::kCopies;
  Attempt& chosen = takes_copies ? copies : collectives;
  Attempt& other = takes_copies ? collectives : copies;
  if (!chosen.plan) {
    const bool both = !takes_copies && !copies.why_not.empty() && copies.why_not != collectives.why_not;
    throw_error("{}", both ? copies.why_not + "; " + chosen.why_not : chosen.why_not);
  }
  planned.plan = *std::move(chosen.plan);
  planned.other = std::move(other.plan);
  planned.why_no_other = std::move(other.why_not);
  set_xla_answer(planned, ends);
  return planned;
}

}  // namespace artifex_devices::planner
