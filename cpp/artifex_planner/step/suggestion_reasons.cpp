// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/suggestion_reasons.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/base/seconds_text.h"

namespace artifex_devices::planner {
namespace {

constexpr double kEqual = 1e-7;     // the search compares seconds in 24 bits
constexpr double kMostOfAll = 0.9;  // kinds of collectives are listed until they make up this part of a change

double seconds_by(const PlannedStep& plan, bool overlaps) noexcept {
  return overlaps ? plan.seconds.overlapped() : plan.seconds.serial();
}

std::string_view noun_of(StepBound bound) noexcept {
  constexpr std::array<std::string_view, 3> kNouns = {"FLOPs", "bytes of memory", "collectives"};
  return kNouns[static_cast<size_t>(bound)];
}

double seconds_of(const StepSeconds& seconds, StepBound bound) noexcept {
  return bound == StepBound::kCompute  ? seconds.compute
         : bound == StepBound::kMemory ? seconds.memory
                                       : seconds.network;
}

/// Seconds of one kind of collectives by the axes that they are over.
struct BoundSeconds {
  std::vector<std::pair<MeshAxes, double>> by_axes;
  double seconds() const noexcept {
    double sum = 0;
    for (const auto& [axes, seconds] : by_axes) sum += seconds;
    return sum;
  }
  MeshAxes main_axes() const noexcept {
    return std::ranges::max_element(by_axes, {}, &std::pair<MeshAxes, double>::second)->first;
  }
};

/// "all-gathers of weights" and so on, in order of first use. Gradients of activations count as activations.
using SecondsByKind = std::vector<std::pair<std::string, BoundSeconds>>;

SecondsByKind seconds_by_kind(const ExplainedStep& step) {
  SecondsByKind kinds;
  const std::vector<StepCollective>& collectives = step.plan.work.collectives;
  for (size_t i = 0; i < collectives.size(); ++i) {
    const StepCollective& each = collectives[i];
    const bool is_parameter = step.model.tensors[static_cast<size_t>(each.tensor)].role == StepRole::kParameter;
    std::string name(to_string(each.kind));
    std::ranges::replace(name, '_', '-');
    name += !is_parameter ? "s of activations" : each.is_gradient ? "s of gradients of weights" : "s of weights";
    auto kind = std::ranges::find(kinds, name, &SecondsByKind::value_type::first);
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {name, {}});
    auto& by_axes = kind->second.by_axes;
    auto found = std::ranges::find(by_axes, each.axes, &std::pair<MeshAxes, double>::first);
    if (found == by_axes.end()) found = by_axes.insert(by_axes.end(), {each.axes, 0.0});
    found->second += step.plan.collective_seconds(i);
  }
  return kinds;
}

double seconds_in(const SecondsByKind& kinds, const std::string& name) {
  const auto found = std::ranges::find(kinds, name, &SecondsByKind::value_type::first);
  return found == kinds.end() ? 0.0 : found->second.seconds();
}

struct SecondsChange {
  std::string kind;
  double seconds = 0;  // more, always above 0
};

/// The largest changes: nine tenths of all, two kinds at most.
std::vector<SecondsChange> largest(std::vector<SecondsChange> changes) {
  std::erase_if(changes, [](const SecondsChange& each) { return !(each.seconds > 0); });
  std::ranges::stable_sort(changes, std::greater<>(), &SecondsChange::seconds);
  double total = 0;
  for (const SecondsChange& each : changes) total += each.seconds;
  const bool one_is_enough = !changes.empty() && changes.front().seconds >= kMostOfAll * total;
  changes.resize(std::min<size_t>(changes.size(), one_is_enough ? 1 : 2));
  return changes;
}

/// The kinds of collectives that make up most of the increase, and of the decrease.
std::string collectives_text(const ExplainedStep& option, const ExplainedStep& before) {
  const SecondsByKind now = seconds_by_kind(option);
  const SecondsByKind then = seconds_by_kind(before);
  std::vector<SecondsChange> more;
  std::vector<SecondsChange> less;
  const auto compare = [&](const std::string& kind) {
    const double change = seconds_in(now, kind) - seconds_in(then, kind);
    more.push_back({kind, change});
    less.push_back({kind, -change});
  };
  for (const auto& [kind, seconds] : now) compare(kind);
  for (const auto& [kind, seconds] : then) {
    if (std::ranges::find(now, kind, &SecondsByKind::value_type::first) == now.end()) compare(kind);
  }
  std::vector<std::string> texts;
  for (const SecondsChange& each : largest(std::move(more))) {
    const auto found = std::ranges::find(now, each.kind, &SecondsByKind::value_type::first);
    texts.push_back(fmt::format("{} more in {} over {}", seconds_text(each.seconds), each.kind,
                                fmt::join(names_of(option.axis_names, found->second.main_axes()), " and ")));
  }
  for (const SecondsChange& each : largest(std::move(less))) {
    texts.push_back(fmt::format("{} less in {}", seconds_text(each.seconds), each.kind));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Text about the parts that take longer in a step with one limit.
std::string bound_text(const ExplainedStep& option, const ExplainedStep& before) {
  const StepSeconds& seconds = option.plan.seconds;
  const StepBound bound = seconds.overlapped_bound();
  const StepBound bound_before = before.plan.seconds.overlapped_bound();
  if (bound != StepBound::kNetwork) {
    return fmt::format("{} of {} on a device, not {}", seconds_text(seconds_of(seconds, bound)), noun_of(bound),
                       seconds_text(seconds_of(before.plan.seconds, bound)));
  }
  const std::string change = collectives_text(option, before);
  if (bound_before == StepBound::kNetwork) return change;
  return fmt::format("bound by network ({}), no longer by {}; {}", seconds_text(seconds.network),
                     to_string(bound_before), change);
}

/// Text about the parts that take longer in a step whose parts run in sequence.
std::string parts_text(const ExplainedStep& option, const ExplainedStep& before) {
  const StepSeconds& now = option.plan.seconds;
  const StepSeconds& then = before.plan.seconds;
  const double network = now.network - then.network;
  const double products = now.serial() - then.serial() - network;
  std::vector<std::string> texts;
  if (std::abs(network) > kEqual * now.serial()) texts.push_back(collectives_text(option, before));
  if (std::abs(products) > kEqual * now.serial()) {
    texts.push_back(fmt::format("{} {} in products", seconds_text(std::abs(products)), products > 0 ? "more" : "less"));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

struct NamedBytes {
  std::string_view name;
  int64_t bytes = 0;
};

std::array<NamedBytes, 6> memory_parts(const StepMemory& memory) {
  const auto whole = [](double bytes) { return static_cast<int64_t>(std::nearbyint(bytes)); };
  return {{{"parameters", whole(memory.parameters.at(1))},
           {"gradients", whole(memory.gradients.at(1))},
           {"optimizer", whole(memory.optimizer.at(1))},
           {"activations", whole(memory.activations.at(1))},
           {"given", whole(memory.given.at(1))},
           {"working", whole(memory.working_at(1))}}};
}

/// Text about the parts that take more memory, or "" if the option needs no more than the previous option.
std::string memory_text(const PlannedStep& option, const PlannedStep& before) {
  const std::array<NamedBytes, 6> now = memory_parts(option.work.memory);
  const std::array<NamedBytes, 6> then = memory_parts(before.work.memory);
  int64_t more = 0;
  NamedBytes grown;
  for (size_t i = 0; i < now.size(); ++i) {
    const int64_t change = now[i].bytes - then[i].bytes;
    more += change;
    if (change > grown.bytes) grown = {now[i].name, change};
  }
  if (more <= 0) return "";
  return fmt::format("{} more on a device: {} of {}", bytes_text(more), bytes_text(grown.bytes), grown.name);
}

bool is_faster(const PlannedStep& plan, const PlannedStep& other, bool overlaps) {
  for (const bool by_overlap : {overlaps, !overlaps}) {
    const double first = seconds_by(plan, by_overlap);
    const double second = seconds_by(other, by_overlap);
    if (std::abs(first - second) > kEqual * second) return first < second;
  }
  return false;
}

}  // namespace

std::string why_first(const PlannedStep& plan, bool overlaps) {
  const StepSeconds& seconds = plan.seconds;
  if (overlaps) {
    const StepBound bound = seconds.overlapped_bound();
    return fmt::format("bound by {}: {} of {}", to_string(bound), seconds_text(seconds_of(seconds, bound)),
                       noun_of(bound));
  }
  return fmt::format("{} of collectives after {} of products", seconds_text(seconds.network),
                     seconds_text(seconds.serial() - seconds.network));
}

std::string why_worse(const ExplainedStep& option, const ExplainedStep& before, bool overlaps) {
  const auto is_more = [&](bool by_overlap) {
    const double then = seconds_by(before.plan, by_overlap);
    return seconds_by(option.plan, by_overlap) - then > kEqual * then;
  };
  const auto more_text = [&](bool by_overlap) {
    return seconds_text(seconds_by(option.plan, by_overlap) - seconds_by(before.plan, by_overlap));
  };
  if (is_more(overlaps)) {
    return fmt::format("{} more: {}", more_text(overlaps),
                       overlaps ? bound_text(option, before) : parts_text(option, before));
  }
  if (is_more(!overlaps)) {
    return overlaps ? fmt::format("as fast if all overlaps, {} more if nothing does: {}", more_text(false),
                                  parts_text(option, before))
                    : fmt::format("as fast one by one, {} more if all overlaps: {}", more_text(true),
                                  bound_text(option, before));
  }
  const std::string memory = memory_text(option.plan, before.plan);
  return memory.empty() ? "as fast and as large; more axes of the mesh, or more sharded dimensions"
                        : "as fast; " + memory;
}

std::string gain_over(const PlannedStep& option, const PlannedStep& best, bool overlaps) {
  for (const bool by_overlap : {overlaps, !overlaps}) {
    const double less = seconds_by(best, by_overlap) - seconds_by(option, by_overlap);
    if (less <= kEqual * seconds_by(best, by_overlap)) continue;
    const char* condition = by_overlap == overlaps ? "" : by_overlap ? " if all overlaps" : " if nothing overlaps";
    return fmt::format("{} less than 1{}", seconds_text(less), condition);
  }
  return "";
}

std::vector<std::string> suggested_names(const StepModel& model, size_t axes, const StepRules& rules) {
  std::vector<std::string> names;
  std::map<std::string_view, int> counts;
  for (size_t axis = 0; axis < axes; ++axis) {
    std::string_view name = "spare";
    for (size_t logical = 0; logical < rules.size(); ++logical) {
      if ((rules[logical] >> axis & 1) == 0) continue;
      const bool is_batch = std::ranges::find(model.batch_axes, static_cast<int>(logical)) != model.batch_axes.end();
      if (is_batch) name = "data";
      if (name == "spare") name = "model";
    }
    const int number = ++counts[name];
    names.push_back(number > 1 ? fmt::format("{}{}", name, number) : std::string(name));
  }
  return names;
}

ExplainedSuggestions explain_suggestions(const StepModel& model, const Cluster& cluster, const SuggestionSpace& space,
                                         const Suggestions& found) {
  const auto planned = [&](const Suggested& each) {
    const ClusterMesh& mesh = space.meshes[each.mesh];
    ExplainedSuggestion option{each.mesh, each.rules, suggested_names(model, mesh.sizes.size(), each.rules), {}, ""};
    option.plan = plan_step(model, cluster, mesh, option.axis_names, option.rules);
    return option;
  };
  ExplainedSuggestions result;
  for (const Suggested& each : found.best) {
    ExplainedSuggestion option = planned(each);
    if (result.options.empty()) {
      option.reason = why_first(option.plan, space.overlaps);
    } else {
      const ExplainedSuggestion& before = result.options.back();
      option.reason =
          why_worse({model, option.axis_names, option.plan}, {model, before.axis_names, before.plan}, space.overlaps);
    }
    result.options.push_back(std::move(option));
  }
  if (found.fastest_too_large) result.too_large = planned(*found.fastest_too_large);
  if (!result.options.empty()) {
    const PlannedStep& best = result.options.front().plan;
    if (result.too_large && !is_faster(result.too_large->plan, best, space.overlaps)) result.too_large.reset();
    if (result.too_large) result.too_large->reason = gain_over(result.too_large->plan, best, space.overlaps);
  } else if (found.smallest) {
    const auto& fastest = found.fastest_too_large;
    if (!fastest || fastest->mesh != found.smallest->mesh || fastest->rules != found.smallest->rules) {
      result.smallest = planned(*found.smallest);
    }
  }
  return result;
}

}  // namespace artifex_devices::planner
