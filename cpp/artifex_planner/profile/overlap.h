// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "artifex_planner/profile/kinds.h"

namespace artifex_devices::planner {

/// The part of each kind of traffic that ran beside computation; none for traffic without a measured message. Where a
/// kind of message is of several kinds of traffic, all of them have its part, and a note is added. With
/// `sends_are_exchanges` the measured sends are those of all-to-alls. Example: an all-reduce of gradients that is busy
/// for 4 s, 1 s of it alone, was hidden to 0.75.
std::array<std::optional<double>, kTrafficCount> measured_overlap(const KindSeconds& expected,
                                                                  const ProfileParts& parts, bool sends_are_exchanges,
                                                                  std::vector<std::string>& notes);

}  // namespace artifex_devices::planner
