// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/sharding/sharding.h"
#include "artifex_planner/kind_names.h"
#include "artifex_planner/reshard/price.h"

namespace artifex_devices::planner {

/// Strategy to move an array from one sharding to another: direct copies from shard to shard, or a sequence of
/// collectives (sequence.h).
enum class ReshardStrategy : uint8_t { kCopies, kCollectives };
template <>
inline constexpr std::array<std::string_view, 2> kKindNames<ReshardStrategy>{"copies", "collectives"};

struct ReshardRequest {
  ClusterRef cluster = nullptr;                            // null: the cluster that the devices belong to, if any
  std::optional<int64_t> memory_limit = std::nullopt;      // bytes that a device may hold during the reshard
  std::optional<ReshardStrategy> strategy = std::nullopt;  // nothing: the faster one on a cluster, else direct copies
  std::optional<Efficiency> efficiency = std::nullopt;     // nothing: the published factors of the cluster
};

/// One step, with its estimated cost or the reason why the cost is unknown.
struct PlannedReshardStep {
  std::string_view move;  // "copies", or a ReshardMove
  std::string text;       // description of the step for tables
  int64_t devices = 1;    // in one group
  int64_t bytes_received = 0;
  int64_t busiest_bytes = 0;  // received by the busiest device
  int64_t shard_bytes = 0;    // of one device before the step
  int64_t shard_bytes_after = 0;
  std::optional<TransferPrice> price;
  std::string why_no_price;
};
void visit_fields(FieldsOf<PlannedReshardStep> auto& step, const auto& visit) {
  visit("move", step.move);
  visit("text", step.text);
  visit("devices", step.devices);
  visit("bytes_received", step.bytes_received);
  visit("busiest_bytes", step.busiest_bytes);
  visit("shard_bytes", std::pair(step.shard_bytes, step.shard_bytes_after));
  visit("estimate", step.price ? std::optional(step.price->expected) : std::nullopt);
  visit("bound", step.price ? std::optional(step.price->bound.seconds()) : std::nullopt);
  visit("why_no_estimate", step.why_no_price);
}

/// The plan and cost of one strategy.
struct PlannedStrategy {
  ReshardStrategy strategy = ReshardStrategy::kCopies;
  std::vector<PlannedReshardStep> steps;
  std::vector<std::pair<std::string_view, int64_t>> bytes_by_link;
  int64_t bytes_received = 0;
  std::optional<int64_t> busiest_bytes;  // nothing: several steps, each with other busiest devices; count bytes_in()
  int64_t bytes_copied = 0;
  int64_t peak_bytes = 0;
  bool is_cheapest = true;
  std::function<std::vector<int64_t>()> bytes_in;  // received by each destination position
};
void visit_fields(FieldsOf<PlannedStrategy> auto& plan, const auto& visit) {
  visit("way", plan.strategy);
  visit("steps", plan.steps);
  visit("bytes_by_link", plan.bytes_by_link);
  visit("bytes_received", plan.bytes_received);
  visit("busiest_bytes", plan.busiest_bytes);
  visit("bytes_copied", plan.bytes_copied);
  visit("peak_bytes", plan.peak_bytes);
  visit("is_cheapest", plan.is_cheapest);
}

/// Lower bounds for every strategy.
struct ReshardLowerBound {
  int64_t total_bytes = 0;
  int64_t busiest_bytes = 0;
  std::vector<int64_t> host_bytes;  // of each host of a cluster that has any of the devices
  std::optional<double> seconds;    // on a cluster whose rates are known
};
void visit_fields(FieldsOf<ReshardLowerBound> auto& bound, const auto& visit) {
  visit("total_bytes", bound.total_bytes);
  visit("busiest_bytes", bound.busiest_bytes);
  visit("bytes_by_host", bound.host_bytes);
  visit("estimate_seconds", bound.seconds);
}

struct PlannedReshard {
  ClusterRef cluster;  // null: devices of this machine
  ReshardLowerBound lower_bound;
  PlannedStrategy plan;
  std::optional<PlannedStrategy> other;
  std::string why_no_other;
  std::optional<bool> xla_gathers;  // xla_resharding.h
  std::string why_xla_is_not_known;
};
void visit_fields(FieldsOf<PlannedReshard> auto& planned, const auto& visit) {
  visit("cluster", planned.cluster);
  visit("lower_bound", planned.lower_bound);
  visit("plan", planned.plan);
  visit("other", planned.other);
  visit("why_no_other", planned.why_no_other);
  visit("xla_answer", planned.xla_gathers);
  visit("why_xla_is_not_known", planned.why_xla_is_not_known);
}

/// Plans a reshard; moves nothing. On a cluster more than 2^16 direct copies are planned only where they are requested
/// or nothing else works. Throws InvalidArgument where the shardings do not fit the shape, the cluster or each other,
/// and where no strategy, or not the requested one, is possible within the memory limit.
/// Example: (8,) of 4 bytes from P('x') to P() over 4 devices is one step of copies; each device receives 24 bytes.
PlannedReshard plan_reshard(const Dims& shape, int64_t itemsize, const Sharding& source, const Sharding& destination,
                            const ReshardRequest& request = {});

}  // namespace artifex_devices::planner
