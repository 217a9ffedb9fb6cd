// SPDX-License-Identifier: Apache-2.0
// How a struct that callers give or get lists its fields, once for every reader and writer. Beside the struct,
// `visit_fields(value, visit)` calls `visit(name, field)` with each field and the name by which callers know it. A
// result may also visit what follows from its fields; it then can only be written.
#pragma once

#include <array>
#include <concepts>
#include <type_traits>

#include "artifex_planner/kind_names.h"

namespace artifex_devices::planner {

template <class Given, class Struct>
concept FieldsOf = std::same_as<std::remove_const_t<Given>, Struct>;

/// Numbers in the order of an enumeration. Callers know them by the names of its values.
template <NamedKind Kind, class Numbers>
struct ByKind {
  Numbers& numbers;
};
template <NamedKind Kind, class Number, size_t count>
  requires(count == kKindNames<Kind>.size())
ByKind<Kind, std::array<Number, count>> by_kind(std::array<Number, count>& numbers) noexcept {
  return {numbers};
}
template <NamedKind Kind, class Number, size_t count>
  requires(count == kKindNames<Kind>.size())
ByKind<Kind, const std::array<Number, count>> by_kind(const std::array<Number, count>& numbers) noexcept {
  return {numbers};
}

/// A number that callers see as an integer where it is one.
struct Amount {
  double value = 0;
};

struct AnyVisit {
  void operator()(const char* name, auto&& field) const;
};
/// Structs with visit_fields().
template <class Struct>
concept Described = requires(Struct& value) { visit_fields(value, AnyVisit{}); };

}  // namespace artifex_devices::planner
