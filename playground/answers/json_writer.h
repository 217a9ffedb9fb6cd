// SPDX-License-Identifier: Apache-2.0
// Writes structs with visit_fields() as JSON: numbers as the shortest text that reads as the same number, numbers that
// are not finite and absent values as null, enumerations by name.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/checkpoint/json_reader.h"
#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/fields.h"

namespace artifex_devices::playground {

template <class Value>
void write_json(std::string& to, const Value& value);

/// Members of an object, in the order of add().
class JsonObject {
 public:
  template <class Value>
  JsonObject& add(std::string_view name, const Value& value) {
    text_ += text_.empty() ? '{' : ',';
    text_ += json_string(name);
    text_ += ':';
    write_json(text_, value);
    return *this;
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

template <class Range>
void write_list(std::string& to, const Range& values) {
  to += '[';
  bool is_first = true;
  for (const auto& each : values) {
    if (!is_first) to += ',';
    is_first = false;
    write_json(to, each);
  }
  to += ']';
}

template <class Value>
struct JsonText {  // of values that are neither numbers nor described
  static void write(std::string& to, const Value& value) { to += json_string(value); }
};
template <>
struct JsonText<JsonObject> {
  static void write(std::string& to, const JsonObject& object) { to += object.text(); }
};
template <>
struct JsonText<Dims> {
  static void write(std::string& to, const Dims& sizes) { write_list(to, sizes); }
};
template <>
struct JsonText<ClusterRef> {
  static void write(std::string& to, const ClusterRef& cluster) {
    to += cluster ? json_string(cluster->name()) : "null";
  }
};
template <>
struct JsonText<SourcedNumber> {
  static void write(std::string& to, const SourcedNumber& number) {
    to += JsonObject().add("value", number.value).add("source", number.source).text();
  }
};
template <class Value>
struct JsonText<std::optional<Value>> {
  static void write(std::string& to, const std::optional<Value>& value) {
    if (value) {
      write_json(to, *value);
    } else {
      to += "null";
    }
  }
};
template <class Value>
struct JsonText<std::vector<Value>> {
  static void write(std::string& to, const std::vector<Value>& values) { write_list(to, values); }
};
template <class First, class Second>
struct JsonText<std::pair<First, Second>> {
  static void write(std::string& to, const std::pair<First, Second>& pair) {
    to += '[';
    write_json(to, pair.first);
    to += ',';
    write_json(to, pair.second);
    to += ']';
  }
};
template <class Kind, class Numbers>
struct JsonText<planner::ByKind<Kind, Numbers>> {
  static void write(std::string& to, const planner::ByKind<Kind, Numbers>& by_kind) {
    JsonObject object;
    for (size_t i = 0; i < by_kind.numbers.size(); ++i) object.add(planner::kKindNames<Kind>[i], by_kind.numbers[i]);
    to += object.text();
  }
};

template <class Value>
void write_json(std::string& to, const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    to += value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<Value>) {
    to += std::isfinite(value) ? fmt::format("{}", value) : "null";
  } else if constexpr (std::is_integral_v<Value>) {
    to += fmt::format("{}", value);
  } else if constexpr (std::is_enum_v<Value>) {
    to += json_string(to_string(value));
  } else if constexpr (planner::Described<const Value>) {
    JsonObject object;
    visit_fields(value, [&](const char* name, const auto& field) { object.add(name, field); });
    to += object.text();
  } else {
    JsonText<Value>::write(to, value);
  }
}

}  // namespace artifex_devices::playground
