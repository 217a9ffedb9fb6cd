// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/profile/parts.h"

#include <algorithm>
#include <cmath>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/training/model.h"

namespace artifex_devices::planner {
namespace {

struct SpanEdge {
  double time = 0;
  size_t kind = 0;
  int by = 0;
};

}  // namespace

ProfileKind profile_kind(MessageKind message) noexcept {
  return static_cast<ProfileKind>(static_cast<int>(ProfileKind::kAllGather) + static_cast<int>(message));
}

ProfileParts profile_parts(const std::vector<ProfileSpan>& spans, int64_t steps) {
  if (spans.empty()) throw_error("profile: the device has no operations; expected at least one; choose another device");
  if (steps < 1) throw_error("profile: steps is {}; expected 1 or more; count the steps that were profiled", steps);
  std::vector<SpanEdge> edges;
  edges.reserve(2 * spans.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto& [kind, begin, end] = spans[i];
    if (!std::isfinite(begin) || !std::isfinite(end) || end < begin) {
      throw_error("profile: operation {} lasts from {} to {} s; expected an end that is not before its begin", i, begin,
                  end);
    }
    edges.push_back({begin, static_cast<size_t>(kind), 1});
    edges.push_back({end, static_cast<size_t>(kind), -1});
  }
  std::ranges::sort(edges, {}, &SpanEdge::time);
  ProfileParts parts;
  PerKind<int64_t> running{};
  double before = edges.front().time;
  for (const SpanEdge& edge : edges) {
    const double passed = edge.time - before;
    before = edge.time;
    if (passed > 0) {
      double* first = &parts.idle;
      for (size_t kind = running.size(); kind-- > 0;) {
        if (running[kind] == 0) continue;
        parts.busy[kind] += passed;
        first = &parts.alone[kind];
      }
      *first += passed;
    }
    running[edge.kind] += edge.by;
  }
  const double count = to_real(steps);
  for (double& each : parts.busy) each /= count;
  for (double& each : parts.alone) each /= count;
  parts.idle /= count;
  parts.seconds = (edges.back().time - edges.front().time) / count;
  return parts;
}

}  // namespace artifex_devices::planner
