// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/conversion/conversion_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/shortened_list.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/conversion/conversion_steps.h"
#include "artifex_devices/conversion/name_pattern.h"

namespace artifex_devices {
namespace {

std::string listed(const std::vector<std::string>& names) {
  return shortened_list(names, [](const std::string& each) { return python_repr(each); }, 5);
}

std::vector<NamePattern> patterns_of(const std::vector<std::string>& texts, const std::string& operation) {
  std::vector<NamePattern> patterns;
  for (const std::string& each : texts) patterns.emplace_back(each, operation);
  return patterns;
}

bool matches_any(const std::vector<NamePattern>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const NamePattern& each) { return each.match(name).has_value(); });
}

int64_t sum_of(int64_t a, int64_t b, const std::string& operation) {
  const std::optional<int64_t> sum = checked_add(a, b);
  if (!sum)
    throw_error("{}: the bytes of all arrays do not fit 64 bits; expected fewer; correct the checkpoint", operation);
  return *sum;
}

// What the rules made, compared with what the target must be.
class Comparison {
 public:
  Comparison(const PlanArguments& arguments, std::map<std::string, ConvertedArray>& arrays)
      : arguments_(arguments),
        arrays_(arrays),
        allow_missing_(patterns_of(arguments.allow_missing, arguments.operation + ": allow_missing")),
        allow_extra_(patterns_of(arguments.allow_extra, arguments.operation + ": allow_extra")) {}

  void run(ConversionPlan* plan) {
    std::set<std::string> wanted;
    for (const NamedType& type : *arguments_.like) {
      if (!wanted.insert(type.name).second) {
        throw_error("{}: like has two arrays with the name {}; expected each name once; correct like",
                    arguments_.operation, python_repr(type.name));
      }
      const auto found = arrays_.find(type.name);
      if (found == arrays_.end()) {
        (matches_any(allow_missing_, type.name) ? plan->missing : missing_).push_back(type.name);
        continue;
      }
      compare(type, found->second);
      plan->targets.push_back({type, std::move(found->second.regions)});
    }
    for (const auto& [name, array] : arrays_) {
      if (wanted.contains(name)) continue;
      (matches_any(allow_extra_, name) ? plan->extra : extra_).push_back(name);
    }
    report();
  }

 private:
  void compare(const NamedType& type, const ConvertedArray& found) {
    if (type.shape != found.shape) {
      shapes_.push_back(fmt::format("{} has shape {} in like and {} after the rules", python_repr(type.name),
                                    to_string(type.shape), to_string(found.shape)));
    } else if (type.dtype != found.dtype) {
      dtypes_.push_back(fmt::format("{} is {} in like and {} after the rules", python_repr(type.name), name(type.dtype),
                                    name(found.dtype)));
      dtype_fix_ = fmt::format("rules.cast({}, {})", python_repr(type.name), python_repr(name(type.dtype)));
    }
  }

  void report() const {
    std::string problems;
    std::string fixes;
    const auto add = [&](const std::string& problem, const std::string& fix) {
      problems += (problems.empty() ? "" : "; ") + problem;
      fixes += (fixes.empty() ? "" : ", ") + fix;
    };
    if (!missing_.empty()) {
      add(fmt::format("{} of like {} no source: {}", missing_.size(), missing_.size() == 1 ? "has" : "have",
                      listed(missing_)),
          fmt::format("add rules or allow_missing=[{}]", python_repr(missing_[0])));
    }
    if (!extra_.empty()) {
      add(fmt::format("{} {} not in like: {}", extra_.size(), extra_.size() == 1 ? "array is" : "arrays are",
                      listed(extra_)),
          fmt::format("add rules.drop({}) or allow_extra=[{}]", python_repr(extra_[0]), python_repr(extra_[0])));
    }
    for (const auto* list : {&shapes_, &dtypes_}) {
      if (list->empty()) continue;
      std::string text = list->front();
      if (list->size() > 1) text += fmt::format(" (and {} more)", list->size() - 1);
      add(text, list == &shapes_ ? "correct the rules" : "add " + dtype_fix_);
    }
    if (!problems.empty()) {
      throw_error("{}: {}; expected the arrays of like; {}", arguments_.operation, problems, fixes);
    }
  }

  const PlanArguments& arguments_;
  std::map<std::string, ConvertedArray>& arrays_;
  std::vector<NamePattern> allow_missing_;
  std::vector<NamePattern> allow_extra_;
  std::vector<std::string> missing_;
  std::vector<std::string> extra_;
  std::vector<std::string> shapes_;
  std::vector<std::string> dtypes_;
  std::string dtype_fix_;
};

void cast_floats(DType dtype, std::map<std::string, ConvertedArray>& arrays) {
  for (auto& [name, array] : arrays) {
    if (row_of(array.dtype).kind != NumberKind::kFloat || array.dtype == dtype) continue;
    array.dtype = dtype;
    for (Region& region : array.regions) region.changes.push_back({dtype, 1});
  }
}

}  // namespace

int64_t ConversionPlan::itemsize_of(const PlannedArray& target) const {
  int64_t largest = itemsize(target.type.dtype);
  for (const Region& region : target.regions) largest = std::max(largest, itemsize(region.dtype));
  return largest;
}

int64_t ConversionPlan::memory_bytes(int64_t workers) const {
  int64_t largest = 0;
  for (const PlannedArray& target : targets) {
    largest = std::max(largest, IndexDomain{{}, target.type.shape}.volume() * itemsize_of(target));
  }
  return workers * 2 * std::min(kPieceBytes, largest);
}

ConversionPlan plan_conversion(const PlanArguments& arguments) {
  ConversionSteps steps(arguments.operation);
  for (size_t i = 0; i < arguments.sources.size(); ++i) {
    const NamedType& type = arguments.sources[i];
    ConvertedArray array{type.shape, type.dtype, {}};
    if (checked_bytes(type.shape, type.dtype, arguments.operation) > 0) {
      array.regions.push_back(whole_region(static_cast<int64_t>(i), type.shape, type.dtype));
    }
    steps.add_source(type.name, std::move(array));
  }
  for (const Rule& rule : arguments.rules) steps.apply(rule);
  if (arguments.floats) cast_floats(*arguments.floats, steps.arrays());
  ConversionPlan plan;
  plan.sources = arguments.sources;
  if (arguments.like) {
    Comparison(arguments, steps.arrays()).run(&plan);
  } else {
    for (auto& [name, array] : steps.arrays()) {
      plan.targets.push_back({{name, array.shape, array.dtype}, std::move(array.regions)});
    }
  }
  std::vector<bool> is_read(plan.sources.size());
  for (const PlannedArray& target : plan.targets) {
    plan.bytes_written =
        sum_of(plan.bytes_written, checked_bytes(target.type.shape, target.type.dtype, arguments.operation),
               arguments.operation);
    for (const Region& region : target.regions) {
      if (region.source == Region::kConstant) continue;
      const auto source = static_cast<size_t>(region.source);
      is_read[source] = true;
      plan.bytes_read =
          sum_of(plan.bytes_read, region.volume() * itemsize(plan.sources[source].dtype), arguments.operation);
    }
  }
  for (size_t i = 0; i < plan.sources.size(); ++i) {
    if (!is_read[i] && IndexDomain{{}, plan.sources[i].shape}.volume() > 0) plan.unread.push_back(plan.sources[i].name);
  }
  return plan;
}

}  // namespace artifex_devices
