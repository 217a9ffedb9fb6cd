// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/data/mix_schedule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

#include "artifex_devices/base/shape.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

MixSchedule::MixSchedule(std::span<const int64_t> parts) : parts_(parts.begin(), parts.end()) {
  int64_t period = 0;
  for (const int64_t part : parts_) {
    if (part < 0 || part > kMostParts - period) {
      throw_error(
          "mix: a weight has {} parts after others with {}; expected 0 or more and a sum of at most {}; use smaller ones",
          part, period, kMostParts);
    }
    period += part;
  }
  if (period == 0)
    throw_error("mix: all weights are 0; expected at least one above 0; give a weight to a source that is used");
  // A use is a job that may run from its release on and must have run before its deadline; one runs in each position.
  using Job = std::tuple<int64_t, int, int64_t>;  // deadline, source, number of the use
  std::priority_queue<Job, std::vector<Job>, std::greater<>> ready;
  std::vector<std::vector<std::pair<int, int64_t>>> released(static_cast<size_t>(period));
  for (int source = 0; source < static_cast<int>(parts_.size()); ++source) {
    if (parts_[static_cast<size_t>(source)] > 0) released[0].emplace_back(source, 0);
  }
  slots_.reserve(static_cast<size_t>(period));
  for (int64_t position = 0; position < period; ++position) {
    for (const auto& [source, use] : released[static_cast<size_t>(position)]) {
      const int64_t part = parts_[static_cast<size_t>(source)];
      ready.emplace((use + 1) * period / part + ((use + 1) * period % part != 0), source, use);
    }
    released[static_cast<size_t>(position)] = {};
    const auto [deadline, source, use] = ready.top();
    ready.pop();
    slots_.push_back({source, static_cast<int32_t>(use)});
    const int64_t part = parts_[static_cast<size_t>(source)];
    if (use + 1 < part) {
      const int64_t release = std::max(position + 1, (use + 1) * period / part);
      released[static_cast<size_t>(release)].emplace_back(source, use + 1);
    }
  }
}

std::optional<int64_t> MixSchedule::position_of(int source, int64_t occurrence) const noexcept {
  const int64_t part = parts_[static_cast<size_t>(source)];
  const auto period = static_cast<int64_t>(slots_.size());
  const auto rank = static_cast<int32_t>(occurrence % part);
  const auto before = checked_mul(occurrence / part, period);
  const auto slot =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.source == source && s.rank == rank; });
  return before ? checked_add(*before, slot - slots_.begin()) : std::nullopt;
}

}  // namespace artifex_devices
