// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/rule_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMaxArrays = int64_t{1} << 20;

// The number that a placeholder stands for, written as the inverse rule writes it.
int64_t layer_number(const std::string& text, const std::string& name, std::string_view where) {
  const bool is_number = !text.empty() && text.size() < 10 && (text == "0" || text[0] != '0') &&
                         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) {
    throw_error("{}: the placeholder is {} in {}; expected a number without zeros before it; correct the pattern",
                where, python_repr(text), python_repr(name));
  }
  return std::stoll(text);
}

}  // namespace

RuleStep::RuleStep(const Rule& rule, std::string where, const Arrays& arrays)
    : rule_(rule), where_(std::move(where)), arrays_(arrays) {
  for (const std::string& each : rule.source) source_.emplace_back(each, where_);
  for (const std::string& each : rule.target) target_.emplace_back(each, where_);
}

std::vector<std::pair<std::string, NameMatch>> RuleStep::matched(const NamePattern& pattern) const {
  std::vector<std::pair<std::string, NameMatch>> found;
  for (const auto& [name, array] : arrays_) {
    if (std::optional<NameMatch> match = pattern.match(name)) found.emplace_back(name, std::move(*match));
  }
  return found;
}

const ConvertedArray& RuleStep::take(const std::string& name) {
  if (!taken.insert(name).second) {
    throw_error("{}: {} is used twice; expected patterns that match different arrays; correct the patterns", where_,
                python_repr(name));
  }
  return arrays_.at(name);
}

void RuleStep::add(std::string name, ConvertedArray array) {
  regions_ += array.regions.size();
  if (regions_ > kMaxRegions || static_cast<int64_t>(made.size()) >= kMaxArrays) {
    throw_error("{}: divides the arrays into too many parts; expected at most {}; convert in two steps", where_,
                kMaxRegions);
  }
  made.emplace_back(std::move(name), std::move(array));
}

int64_t RuleStep::axis_of(const std::string& name, const Dims& shape, int64_t axis) const {
  const int64_t rank = shape.size();
  if (axis < -rank || axis >= rank) {
    throw_error("{}: the axis is {}; expected an axis of {}, which has shape {}; correct it", where_, axis,
                python_repr(name), to_string(shape));
  }
  return axis < 0 ? axis + rank : axis;
}

void RuleStep::stack() {
  std::map<NameMatch, std::map<int64_t, std::string>> stacks;
  for (auto& [name, match] : matched(source_[0])) {
    const int64_t number = layer_number(match.names.at(rule_.placeholder), name, where_);
    match.names.erase(rule_.placeholder);
    stacks[match][number] = name;
  }
  for (const auto& [match, names] : stacks) {
    const auto count = static_cast<int64_t>(names.size());
    const ConvertedArray& first = arrays_.at(names.begin()->second);
    Dims of_stack = first.shape;
    of_stack.push_back(count);
    const int64_t position = axis_of(target_[0].fill(match), of_stack, rule_.axis);
    std::vector<const ConvertedArray*> from;
    for (const auto& [number, name] : names) {
      const auto index = static_cast<int64_t>(from.size());
      if (number != index) {
        NameMatch missing = match;
        missing.names[rule_.placeholder] = std::to_string(index);
        throw_error(
            "{}: {} is missing; expected numbers from 0 on without gaps, got {} after {} arrays; correct the "
            "source",
            where_, python_repr(source_[0].fill(missing)), number, index);
      }
      const ConvertedArray& array = take(name);
      if (array.shape != first.shape || array.dtype != first.dtype) {
        throw_error("{}: {} is {}{}, but {} is {}{}; expected arrays of one shape and dtype; correct the pattern",
                    where_, python_repr(names.begin()->second), artifex_devices::name(first.dtype),
                    to_string(first.shape), python_repr(name), artifex_devices::name(array.dtype),
                    to_string(array.shape));
      }
      from.push_back(&array);
    }
    add(target_[0].fill(match), stacked(from, position));
  }
}

void RuleStep::unstack() {
  for (auto& [name, match] : matched(source_[0])) {
    const ConvertedArray& array = take(name);
    const int64_t position = axis_of(name, array.shape, rule_.axis);
    const int64_t count = array.shape[position];
    if (count == 0 || count > kMaxArrays) {
      throw_error("{}: axis {} of {} has size {}; expected 1 to {} layers; correct the position", where_, position,
                  python_repr(name), count, kMaxArrays);
    }
    for (int64_t i = 0; i < count; ++i) {
      match.names[rule_.placeholder] = std::to_string(i);
      add(target_[0].fill(match), layer_of(array, position, i));
    }
  }
}

void RuleStep::split() {
  int64_t total = 0;
  for (const int64_t size : rule_.sizes) total += size;
  for (const auto& [name, match] : matched(source_[0])) {
    const ConvertedArray& array = take(name);
    const int64_t axis = axis_of(name, array.shape, rule_.axis);
    if (array.shape[axis] != total) {
      throw_error("{}: axis {} of {} has size {}; expected {}, the sum of sizes {}; correct the sizes", where_, axis,
                  python_repr(name), array.shape[axis], total, to_string(rule_.sizes));
    }
    for (size_t part = 0; part < target_.size(); ++part) {
      add(target_[part].fill(match), split_part(array, axis, rule_.sizes, rule_.groups, static_cast<int64_t>(part)));
    }
  }
}

void RuleStep::join() {
  std::set<NameMatch> matches;
  for (const NamePattern& pattern : source_) {
    for (auto& [name, match] : matched(pattern)) matches.insert(std::move(match));
  }
  for (const NameMatch& match : matches) {
    std::vector<const ConvertedArray*> from;
    int64_t axis = 0;
    Dims shape;
    for (size_t part = 0; part < source_.size(); ++part) {
      const std::string name = source_[part].fill(match);
      if (!arrays_.contains(name)) {
        throw_error("{}: {} is missing; expected an array for each of the patterns; correct the patterns or the source",
                    where_, python_repr(name));
      }
      const ConvertedArray& array = take(name);
      if (part == 0) {
        axis = axis_of(name, array.shape, rule_.axis);
        shape = array.shape;
        shape[axis] = 0;
      }
      Dims expected = shape;
      if (!shape.empty()) expected[axis] = rule_.sizes[static_cast<int64_t>(part)];
      if (array.shape != expected || (part > 0 && array.dtype != from[0]->dtype)) {
        throw_error("{}: {} is {}{}; expected {}{}; correct the sizes or the axis", where_, python_repr(name),
                    artifex_devices::name(array.dtype), to_string(array.shape),
                    artifex_devices::name(part > 0 ? from[0]->dtype : array.dtype), to_string(expected));
      }
      from.push_back(&array);
    }
    add(target_[0].fill(match), joined(from, axis, rule_.sizes, rule_.groups));
  }
}

ConvertedArray RuleStep::constant() const {
  checked_bytes(rule_.shape, *rule_.dtype, where_);
  Region region = whole_region(Region::kConstant, rule_.shape, *rule_.dtype);
  for (RegionLoop& loop : region.loops) loop.stride = 0;
  region.constant = rule_.value;
  ConvertedArray array{rule_.shape, *rule_.dtype, {}};
  if (std::ranges::find(rule_.shape, 0) == rule_.shape.end()) array.regions.push_back(std::move(region));
  return array;
}

// The array after a rule that keeps its name.
ConvertedArray RuleStep::changed(const std::string& name) {
  const ConvertedArray& array = take(name);
  const auto misfit = [&](std::string_view expected) {
    throw_error("{}: {} is {}{}; expected {}; correct the rule", where_, python_repr(name),
                artifex_devices::name(array.dtype), to_string(array.shape), expected);
  };
  const auto with_change = [&](DType dtype, const ValueChange& change) {
    ConvertedArray result = array;
    result.dtype = dtype;
    for (Region& region : result.regions) region.changes.push_back(change);
    return result;
  };
  switch (rule_.kind) {
    case RuleKind::kTranspose:
      if (array.shape.size() != rule_.axes.size()) misfit(fmt::format("{} dimensions", rule_.axes.size()));
      return transposed(array, rule_.axes);
    case RuleKind::kUnflatten: {
      const int64_t axis = axis_of(name, array.shape, rule_.axis);
      const int64_t size = checked_product(rule_.sizes, where_);
      if (array.shape[axis] != size) misfit(fmt::format("axis {} to have size {}", axis, size));
      return unflattened(array, axis, rule_.sizes);
    }
    case RuleKind::kFlatten: {
      const int64_t axis = axis_of(name, array.shape, rule_.axis);
      for (int64_t d = 0; d < rule_.sizes.size(); ++d) {
        if (axis + d >= array.shape.size() || array.shape[axis + d] != rule_.sizes[d]) {
          misfit(fmt::format("axes from {} on to have sizes {}", axis, to_string(rule_.sizes)));
        }
      }
      return flattened(array, axis, rule_.sizes.size());
    }
    case RuleKind::kCast:
      if (is_complex(array.dtype) && !is_complex(*rule_.dtype)) misfit("real numbers, because a cast loses the others");
      return array.dtype == *rule_.dtype ? array : with_change(*rule_.dtype, {rule_.dtype, 1});
    default:
      if (row_of(array.dtype).kind != NumberKind::kFloat) misfit("floating-point numbers");
      return with_change(array.dtype, {std::nullopt, rule_.factor});
  }
}

void RuleStep::run() {
  switch (rule_.kind) {
    case RuleKind::kConstant:
      return add(rule_.target[0], constant());
    case RuleKind::kStack:
      return stack();
    case RuleKind::kUnstack:
      return unstack();
    case RuleKind::kSplit:
      return split();
    case RuleKind::kJoin:
      return join();
    default:
      break;
  }
  for (const auto& [name, match] : matched(source_[0])) {
    if (rule_.kind == RuleKind::kDrop) {
      take(name);
    } else if (rule_.kind == RuleKind::kRename) {
      add(target_[0].fill(match), take(name));
    } else {
      add(name, changed(name));
    }
  }
}

}  // namespace artifex_devices
