// SPDX-License-Identifier: Apache-2.0
// Conversions between the structs of struct_fields.h and dicts of their fields.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "struct_fields.h"

namespace artifex_devices::planner::bindings {

/// The value of an enumeration with this name, which is that of the argument or field `key`.
template <class Kind>
Kind kind_named(std::string_view key, std::string_view name) {
  std::optional<Kind> kind;
  if constexpr (std::same_as<Kind, MatmulFormat>) {
    kind = matmul_format_from_name(name);
  } else {
    kind = kind_from_name<Kind>(name);
  }
  if (!kind) throw_error("{} is {:?}; expected one of the documented names; correct it", key, name);
  return *kind;
}

/// Reads one field. Overloads are for values that Python spells in another way.
template <class Value>
Value value_from_python(const char* key, pybind11::handle value, const Value& /*default*/) {
  if constexpr (std::is_enum_v<Value>) {
    return kind_named<Value>(key, value.cast<std::string>());
  } else {
    return value.cast<Value>();
  }
}

inline SourcedNumber value_from_python(const char* /*key*/, pybind11::handle value, const SourcedNumber& /*default*/) {
  auto [number, source] = value.cast<std::pair<double, std::string>>();
  return {number, std::move(source)};
}

inline ContextChoice value_from_python(const char* key, pybind11::handle value, const ContextChoice& /*default*/) {
  const auto [method, overlap] = value.cast<std::pair<std::string, double>>();
  return {kind_named<ContextMethod>(key, method), overlap};
}

inline Dims value_from_python(const char* /*key*/, pybind11::handle value, const Dims& /*default*/) {
  return Dims(value.cast<std::vector<int64_t>>());
}

template <class Value>
std::vector<Value> value_from_python(const char* key, pybind11::handle values, const std::vector<Value>& /*default*/) {
  std::vector<Value> result;
  for (const pybind11::handle value : values) result.push_back(value_from_python(key, value, Value{}));
  return result;
}

/// A number for each kind, by its name.
template <class Kind, size_t count>
std::array<double, count> numbers_by_kind(pybind11::handle from) {
  std::array<double, count> result{};
  const auto numbers = from.cast<pybind11::dict>();
  for (size_t i = 0; i < count; ++i) result[i] = numbers[kKindNames<Kind>[i].data()].template cast<double>();
  return result;
}

inline TensorNumbers value_from_python(const char* /*key*/, pybind11::handle value, const TensorNumbers& /*default*/) {
  return numbers_by_kind<TensorKind, kTensorKindCount>(value);
}

using TrafficNumbers = std::array<double, kTrafficCount>;
inline TrafficNumbers value_from_python(const char* /*key*/, pybind11::handle value, const TrafficNumbers& /*none*/) {
  return numbers_by_kind<Traffic, kTrafficCount>(value);
}

/// Writes one field: a number or text, an enumeration by its name.
template <class Value>
pybind11::object value_to_python(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return pybind11::cast(std::string(to_string(value)));
  } else {
    return pybind11::cast(value);
  }
}
inline pybind11::object value_to_python(const SourcedNumber& number) {
  return pybind11::make_tuple(number.value, number.source);
}

/// The fields that are numbers, texts and enumerations, and sourced numbers.
template <Described Struct>
pybind11::dict fields_dict(const Struct& from) {
  pybind11::dict result;
  visit_fields(from, [&](const char* name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_enum_v<Field> || std::is_arithmetic_v<Field> || std::same_as<Field, SourcedNumber>) {
      result[name] = value_to_python(field);
    }
  });
  return result;
}

}  // namespace artifex_devices::planner::bindings

namespace pybind11::detail {

/// Described structs are dicts in Python. A field that is None has the struct's default.
template <artifex_devices::planner::bindings::Described Struct>
class type_caster<Struct> {
 public:
  PYBIND11_TYPE_CASTER(Struct, const_name("dict"));
  bool load(handle from, bool /*convert*/) {
    if (!isinstance<dict>(from)) return false;
    const auto fields = reinterpret_borrow<dict>(from);
    artifex_devices::planner::bindings::visit_fields(value, [&](const char* key, auto& field) {
      const object given = fields[key];
      if (!given.is_none()) field = artifex_devices::planner::bindings::value_from_python(key, given, field);
    });
    return true;
  }
  static handle cast(const Struct& from, return_value_policy /*policy*/, handle /*parent*/) {
    return artifex_devices::planner::bindings::fields_dict(from).release();
  }
};

}  // namespace pybind11::detail
