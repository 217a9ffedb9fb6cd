// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "artifex_planner/profile/kinds.h"

namespace artifex_devices::planner {

/// Returns the part of each kind of traffic that overlapped with computation; nothing for traffic without a measured
/// message. If several kinds of traffic use one kind of message, all of them get its part, and a note is added. With
/// `sends_are_exchanges`, the measured sends belong to all-to-alls. Example: an all-reduce of gradients that is busy
/// for 4 s, 1 s of it alone, was hidden to 0.75.
std::array<std::optional<double>, kTrafficCount> measured_overlap(const KindSeconds& expected,
                                                                  const ProfileParts& parts, bool sends_are_exchanges,
                                                                  std::vector<std::string>& notes);

}  // namespace artifex_devices::planner
