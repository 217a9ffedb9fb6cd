// SPDX-License-Identifier: Apache-2.0
// Conversions between structs with visit_fields() and dicts of their fields.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster.h"
#include "artifex_planner/fields.h"
#include "artifex_planner/step/description.h"
#include "artifex_planner/training/space.h"

namespace artifex_devices::planner::bindings {

/// The enumeration value with this name. `key` is the argument or field that names it.
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
void read_field(const char* key, pybind11::handle from, Value& into) {
  if constexpr (std::is_enum_v<Value>) {
    into = kind_named<Value>(key, from.cast<std::string>());
  } else {
    into = from.cast<Value>();
  }
}

inline void read_field(const char* /*key*/, pybind11::handle from, SourcedNumber& into) {
  auto [number, source] = from.cast<std::pair<double, std::string>>();
  into = {number, std::move(source)};
}

inline void read_field(const char* key, pybind11::handle from, ContextChoice& into) {
  const auto [method, overlap] = from.cast<std::pair<std::string, double>>();
  into = {kind_named<ContextMethod>(key, method), overlap};
}

inline void read_field(const char* /*key*/, pybind11::handle from, Dims& into) {
  into = Dims(from.cast<std::vector<int64_t>>());
}

template <class Value>
void read_field(const char* key, pybind11::handle from, std::vector<Value>& into) {
  into.clear();
  for (const pybind11::handle each : from) {
    Value value{};
    read_field(key, each, value);
    into.push_back(std::move(value));
  }
}

template <class Kind, class Numbers>
void read_field(const char* /*key*/, pybind11::handle from, ByKind<Kind, Numbers> into) {
  const auto given = from.cast<pybind11::dict>();
  for (size_t i = 0; i < into.numbers.size(); ++i) {
    into.numbers[i] = given[kKindNames<Kind>[i].data()].template cast<typename Numbers::value_type>();
  }
}

/// Writes one field: a struct as the dict of its fields, an enumeration by its name, a list as a tuple.
template <class Value>
pybind11::object to_python(const Value& value);
template <class Value>
pybind11::object to_python(const std::optional<Value>& value);
template <class Value>
pybind11::object to_python(const std::vector<Value>& values);
template <class First, class Second>
pybind11::object to_python(const std::pair<First, Second>& pair);
template <class Kind, class Numbers>
pybind11::object to_python(const ByKind<Kind, Numbers>& by_kind);
inline pybind11::object to_python(const SourcedNumber& number);
inline pybind11::object to_python(const Amount& amount);
inline pybind11::object to_python(const ClusterRef& cluster);

template <class Value>
pybind11::object to_python(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return pybind11::str(std::string(to_string(value)));
  } else if constexpr (Described<const Value>) {
    pybind11::dict result;
    visit_fields(value, [&](const char* name, const auto& field) { result[name] = to_python(field); });
    return result;
  } else {
    return pybind11::cast(value);
  }
}

template <class Value>
pybind11::object to_python(const std::optional<Value>& value) {
  return value ? to_python(*value) : pybind11::none();
}

template <class Value>
pybind11::object to_python(const std::vector<Value>& values) {
  pybind11::tuple result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = to_python(values[i]);
  return result;
}

template <class First, class Second>
pybind11::object to_python(const std::pair<First, Second>& pair) {
  return pybind11::make_tuple(to_python(pair.first), to_python(pair.second));
}

template <class Kind, class Numbers>
pybind11::object to_python(const ByKind<Kind, Numbers>& by_kind) {
  pybind11::dict result;
  for (size_t i = 0; i < by_kind.numbers.size(); ++i) {
    result[kKindNames<Kind>[i].data()] = to_python(by_kind.numbers[i]);
  }
  return result;
}

inline pybind11::object to_python(const SourcedNumber& number) {
  return pybind11::make_tuple(number.value, number.source);
}

inline pybind11::object to_python(const Amount& amount) {
  if (!std::isfinite(amount.value) || std::floor(amount.value) != amount.value) return pybind11::float_(amount.value);
  return pybind11::reinterpret_steal<pybind11::object>(PyLong_FromDouble(amount.value));
}

/// Python's handles are of mutable clusters; none of their methods changes one.
inline pybind11::object to_python(const ClusterRef& cluster) {
  return pybind11::cast(std::const_pointer_cast<Cluster>(cluster));
}

}  // namespace artifex_devices::planner::bindings

namespace pybind11::detail {

/// Described structs are dicts in Python. A field that is None has the struct's default.
template <artifex_devices::planner::Described Struct>
class type_caster<Struct> {
 public:
  PYBIND11_TYPE_CASTER(Struct, const_name("dict"));
  bool load(handle from, bool /*convert*/) {
    if (!isinstance<dict>(from)) return false;
    const auto fields = reinterpret_borrow<dict>(from);
    visit_fields(value, [&](const char* key, auto&& field) {
      const object given = fields[key];
      if (!given.is_none()) artifex_devices::planner::bindings::read_field(key, given, field);
    });
    return true;
  }
  static handle cast(const Struct& from, return_value_policy /*policy*/, handle /*parent*/) {
    return artifex_devices::planner::bindings::to_python(from).release();
  }
};

}  // namespace pybind11::detail
