// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "artifex_planner/training/links.h"

namespace artifex_devices::planner {

/// Kind of an operation in a profile. An operation hides operations of later kinds that run at the same time.
enum class ProfileKind : uint8_t {
  kProducts,
  kAttentionForward,
  kAttentionBackward,
  kAttention,    // of an unknown direction
  kElementwise,  // limited by the memory: norms, activation functions, copies on the device, the update
  kOther,        // of an unknown kind; counts as computation
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kSend,
  kHost  // copies between host and device
};
inline constexpr int kProfileKindCount = 12;
template <>
inline constexpr std::array<std::string_view, 12> kKindNames<ProfileKind>{
    "products",   "attention_forward", "attention_backward", "attention",  "elementwise", "other",
    "all_gather", "reduce_scatter",    "all_reduce",         "all_to_all", "send",        "host"};
ProfileKind profile_kind(MessageKind message) noexcept;

template <typename Value>
using PerKind = std::array<Value, kProfileKindCount>;
template <typename Value>
Value& at(PerKind<Value>& values, ProfileKind kind) noexcept {
  return values[static_cast<size_t>(kind)];
}
template <typename Value>
Value at(const PerKind<Value>& values, ProfileKind kind) noexcept {
  return values[static_cast<size_t>(kind)];
}

/// An operation of a device, in seconds.
struct ProfileSpan {
  ProfileKind kind = ProfileKind::kOther;
  double begin = 0;
  double end = 0;
};

/// Seconds of one step of a device.
struct ProfileParts {
  PerKind<double> busy{};   // while an operation of the kind runs
  PerKind<double> alone{};  // the part of `busy` in which no operation of an earlier kind runs
  double idle = 0;          // while no operation runs
  double seconds = 0;       // from the first operation to the last one: the sum of `alone` and `idle`
};
void visit_fields(FieldsOf<ProfileParts> auto& parts, const auto& visit) {
  visit("busy", by_kind<ProfileKind>(parts.busy));
  visit("alone", by_kind<ProfileKind>(parts.alone));
  visit("idle", parts.idle);
  visit("seconds", parts.seconds);
}

/// The parts of a profile of some steps. Operations of one kind that run at the same time count once. Throws
/// InvalidArgument for no spans, times that are not finite, ends before their begin, and steps below 1. Example: a
/// product from 0 to 4 s and an all-reduce from 3 to 6 s are 4 and 3 s busy; the all-reduce is alone for 2 of 6 s.
ProfileParts profile_parts(const std::vector<ProfileSpan>& spans, int64_t steps);

}  // namespace artifex_devices::planner
