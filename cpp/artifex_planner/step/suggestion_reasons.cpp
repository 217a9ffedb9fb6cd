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
  return overlaps ? plan.expected.overlapped() : plan.expected.serial();
}

double exposed_by(const PlannedStep& plan, bool overlaps) noexcept {
  return overlaps ? plan.expected.exposed() : plan.expected.network();
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
    std::string name(to_string(each.kind));
    std::ranges::replace(name, '_', '-');
    name += !each.is_parameter ? "s of activations" : each.is_gradient ? "s of gradients of weights" : "s of weights";
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

/// Text about the parts that take longer.
std::string parts_text(const ExplainedStep& option, const ExplainedStep& before, bool overlaps) {
  const double all = seconds_by(option.plan, overlaps);
  const double network = exposed_by(option.plan, overlaps) - exposed_by(before.plan, overlaps);
  const double device = option.plan.expected.device() - before.plan.expected.device();
  std::vector<std::string> texts;
  const auto word = [](double change) { return change > 0 ? "more" : "less"; };
  if (std::abs(network) > kEqual * all) {
    const std::string change = collectives_text(option, before);
    if (overlaps) {
      texts.push_back(fmt::format("{} {} that nothing hides{}", seconds_text(std::abs(network)), word(network),
                                  change.empty() ? "" : fmt::format(" ({})", change)));
    } else {
      texts.push_back(change);
    }
  }
  if (std::abs(device) > kEqual * all) {
    texts.push_back(fmt::format("{} {} on each device", seconds_text(std::abs(device)), word(device)));
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
  const ExpectedStep& step = plan.expected;
  const std::string device = seconds_text(step.device()) + " on each device";
  if (step.network() <= 0) return device + ", no collectives";
  if (!overlaps) return fmt::format("{}, then {} of collectives", device, seconds_text(step.network()));
  if (step.exposed() <= kEqual * step.overlapped()) {
    return fmt::format("{}, which hides all {} of collectives", device, seconds_text(step.network()));
  }
  return fmt::format("{}, then {} of collectives that nothing hides ({} in all)", device, seconds_text(step.exposed()),
                     seconds_text(step.network()));
}

std::string why_worse(const ExplainedStep& option, const ExplainedStep& before, bool overlaps) {
  for (const bool by_overlap : {overlaps, !overlaps}) {
    const double more = seconds_by(option.plan, by_overlap) - seconds_by(before.plan, by_overlap);
    if (more <= kEqual * seconds_by(before.plan, by_overlap)) continue;
    const char* equal = by_overlap == overlaps ? "" : overlaps ? "as fast with overlap, " : "as fast without overlap, ";
    const char* condition = by_overlap == overlaps ? "" : overlaps ? " without" : " with it";
    return fmt::format("{}{} more{}: {}", equal, seconds_text(more), condition, parts_text(option, before, by_overlap));
  }
  const std::string memory = memory_text(option.plan, before.plan);
  return memory.empty() ? "as fast and as large; more axes of the mesh, or more sharded dimensions"
                        : "as fast; " + memory;
}

std::string gain_over(const PlannedStep& option, const PlannedStep& best, bool overlaps) {
  for (const bool by_overlap : {overlaps, !overlaps}) {
    const double less = seconds_by(best, by_overlap) - seconds_by(option, by_overlap);
    if (less <= kEqual * seconds_by(best, by_overlap)) continue;
    const char* condition = by_overlap == overlaps ? "" : by_overlap ? " with overlap" : " without overlap";
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
                                         const Suggestions& found, const Efficiency& efficiency) {
  const auto planned = [&](const Suggested& each) {
    const ClusterMesh& mesh = space.meshes[each.mesh];
    ExplainedSuggestion option{each.mesh, each.rules, suggested_names(model, mesh.sizes.size(), each.rules), {}, ""};
    option.plan = plan_step(model, cluster, mesh, option.axis_names, option.rules, efficiency);
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
