// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace artifex_devices::planner {

/// Names of the values of an enumeration, in their order. The header of each enumeration specialises it.
template <class Kind>
inline constexpr std::array<std::string_view, 0> kKindNames{};

template <class Kind>
concept NamedKind = !kKindNames<Kind>.empty();

template <NamedKind Kind>
constexpr std::string_view to_string(Kind kind) noexcept {
  return kKindNames<Kind>[static_cast<size_t>(kind)];
}

/// The value with this name; nothing where none has it.
template <NamedKind Kind>
constexpr std::optional<Kind> kind_from_name(std::string_view name) noexcept {
  const auto found = std::ranges::find(kKindNames<Kind>, name);
  if (found == kKindNames<Kind>.end()) return std::nullopt;
  return static_cast<Kind>(found - kKindNames<Kind>.begin());
}

}  // namespace artifex_devices::planner
