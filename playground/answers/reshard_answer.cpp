// SPDX-License-Identifier: Apache-2.0
#include "answer.h"
#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/seconds_text.h"
#include "artifex_devices/render/reshard_svg.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_planner/reshard/placed_copies.h"
#include "artifex_planner/reshard/plan.h"
#include "devices.h"
#include "notation.h"

namespace artifex_devices::playground {
namespace {

using planner::PlannedReshardStep;
using planner::PlannedStrategy;

/// A cost of all steps in seconds; nothing where the seconds of one step are not known.
std::optional<double> seconds_of(const PlannedStrategy& plan, planner::TransferCost planner::TransferPrice::* cost) {
  double seconds = 0;
  for (const PlannedReshardStep& step : plan.steps) {
    if (!step.price) return std::nullopt;
    seconds += ((*step.price).*cost).seconds();
  }
  return seconds;
}

std::vector<std::string> picture_lines(const PlannedStrategy& plan) {
  std::vector<std::string> lines;
  for (const PlannedReshardStep& step : plan.steps) {
    lines.push_back(step.text);
    lines.push_back(fmt::format("{} into the busiest{}", bytes_text(step.busiest_bytes),
                                step.price ? ", " + seconds_text(step.price->expected.seconds()) : ""));
  }
  if (lines.empty()) lines.emplace_back("nothing to do");
  return lines;
}

std::string picture_of(const std::string& title, const PlannedStrategy& plan, const Sharding& source,
                       const Sharding& destination, const Dims& shape, int64_t itemsize, const Cluster* cluster) {
  std::vector<std::pair<std::string, int64_t>> links(plan.bytes_by_link.begin(), plan.bytes_by_link.end());
  ReshardPicture picture{title, picture_lines(plan), {}, "", links, cluster};
  if (plan.strategy == planner::ReshardStrategy::kCopies) {
    planner::DrawnCopies drawn = planner::drawn_copies(source, destination, shape, itemsize, cluster, links);
    picture.why_no_traffic = std::move(drawn.why_none);
    for (const planner::DeviceMessage& each : drawn.messages) {
      picture.traffic.push_back({each.from, each.to, each.bytes});
    }
  } else {
    picture.why_no_traffic = "collectives: their algorithms decide which device sends to which, so no arrows are drawn";
  }
  return reshard_svg(source, destination, shape, picture);
}

}  // namespace

JsonObject reshard_answer(const Question& question) {
  const ClusterRef cluster = cluster_of(question);
  const MeshRef mesh = mesh_on(mesh_of(question.text("mesh")), cluster);
  const Dims shape = shape_of(question.text("shape"));
  const DType dtype = dtype_of(question.text("dtype"));
  const auto source = NamedSharding::make(mesh, spec_of(question.text("spec")));
  const auto destination = NamedSharding::make(mesh, spec_of(question.text("to_spec")));
  const planner::PlannedReshard planned =
      planner::plan_reshard(shape, itemsize(dtype), *source, *destination, {.cluster = cluster});
  constexpr auto kExpected = &planner::TransferPrice::expected;
  const std::string title = fmt::format("reshard of {} {}: {} -> {}, {} devices", to_string(shape), name(dtype),
                                        source->spec().to_string(), destination->spec().to_string(), mesh->size());
  JsonObject answer;
  answer.add("axes", axes_of(mesh->abstract_mesh()))
      .add("shape", shape)
      .add("spec", source->spec().to_string())
      .add("to_spec", destination->spec().to_string())
      .add("plan", planned.plan)
      .add("seconds", seconds_of(planned.plan, kExpected))
      .add("bound", seconds_of(planned.plan, &planner::TransferPrice::bound))
      .add("other", planned.other)
      .add("other_seconds", planned.other ? seconds_of(*planned.other, kExpected) : std::nullopt)
      .add("why_no_other", planned.why_no_other)
      .add("lower_bound", planned.lower_bound)
      .add("xla_gathers", planned.xla_gathers);
  if (cluster) {
    const std::vector<Rate> rates = rates_of(*cluster);
    std::vector<std::string> texts;
    for (const Rate& rate : rates) texts.push_back(rate.source);
    answer.add("cluster", cluster).add("rates", rates).add("sources", sources_in(texts));
  }
  return answer.add("svg",
                    picture_of(title, planned.plan, *source, *destination, shape, itemsize(dtype), cluster.get()));
}

}  // namespace artifex_devices::playground
