// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/profile/overlap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace artifex_devices::planner {
namespace {

constexpr double kNamedPart = 0.01;  // part of a kind of message that a note names

}  // namespace

std::array<std::optional<double>, kTrafficCount> measured_overlap(const KindSeconds& expected,
                                                                  const ProfileParts& parts, bool sends_are_exchanges,
                                                                  std::vector<std::string>& notes) {
  const auto hidden = [&](ProfileKind kind) -> std::optional<double> {
    if (sends_are_exchanges && kind == ProfileKind::kAllToAll) kind = ProfileKind::kSend;
    const double busy = at(parts.busy, kind);
    if (busy <= 0) return std::nullopt;
    return 1 - at(parts.alone, kind) / busy;
  };
  std::array<std::optional<double>, kTrafficCount> result;
  for (size_t traffic = 0; traffic < result.size(); ++traffic) {
    double sum = 0;
    double behind = 0;
    for (size_t message = 0; message < kMessageCount; ++message) {
      const std::optional<double> part = hidden(profile_kind(static_cast<MessageKind>(message)));
      if (!part) continue;
      sum += expected.messages[traffic][message];
      behind += *part * expected.messages[traffic][message];
    }
    if (sum <= 0) continue;
    // These messages are hidden in any case; the configured part applies to all other messages.
    const double always = traffic == static_cast<size_t>(Traffic::kTensor) ? expected.tensor_beside : 0;
    if (sum > always) result[traffic] = std::clamp((behind - always) / (sum - always), 0.0, 1.0);
  }
  if (at(expected.kinds, ProfileKind::kHost) > 0) {
    result[static_cast<size_t>(Traffic::kOffload)] = hidden(ProfileKind::kHost);
  }
  for (size_t message = 0; message < kMessageCount; ++message) {
    const ProfileKind kind = profile_kind(static_cast<MessageKind>(message));
    std::vector<std::string_view> names;
    for (size_t traffic = 0; traffic < result.size(); ++traffic) {
      if (expected.messages[traffic][message] > kNamedPart * at(expected.kinds, kind)) {
        names.push_back(to_string(static_cast<Traffic>(traffic)));
      }
    }
    if (const auto part = hidden(kind); part && names.size() > 1) {
      notes.push_back(
          fmt::format("{}: messages of {} have one name; {:.0f} % of their time is hidden, assumed equal for each",
                      to_string(kind), fmt::join(names, " and "), 100 * *part));
    }
  }
  return result;
}

}  // namespace artifex_devices::planner
