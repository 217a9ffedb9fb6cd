// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "artifex_planner/profile/kinds.h"

namespace artifex_devices::planner {

struct ProfileFit {
  Efficiency efficiency;
  std::vector<Factor> fitted;
  std::array<std::optional<double>, kTrafficCount> overlap;  // part that was hidden, of traffic that was measured
  PerKind<double> before{};                                  // expected seconds with the first factors
  PerKind<double> after{};                                   // the same with the fitted factors
  std::vector<std::string> notes;                            // factors that were not fitted, and why
};
void visit_fields(FieldsOf<ProfileFit> auto& fit, const auto& visit) {
  visit("efficiency", fit.efficiency);
  visit("fitted", fit.fitted);
  visit("overlap", by_kind<Traffic>(fit.overlap));
  visit("before", by_kind<ProfileKind>(fit.before));
  visit("after", by_kind<ProfileKind>(fit.after));
  visit("notes", fit.notes);
}

/// Fits the factors of a chip to the parts of a profiled step of one of its devices. Each part has its own factor,
/// which is scaled until the expected seconds are the measured ones: `memory` by elementwise operations, `matmul` (or
/// `matmul_float8`) by products, both passes of attention by its kernels, `host` by copies to the host. `links` and
/// `network` (with the sums in their switches) follow from all messages by least squares (relative_fit.h): one kind of
/// message that uses only one of them gives the ratio. Time without operations becomes `layer_seconds`, and
/// operations of unknown kinds `step_seconds`, unless the device also waits for other stages. The overlap of a kind of
/// traffic is the part of its messages that computation hides. Factors keep `source` as their source. Throws
/// InvalidArgument for an inconsistent configuration and a stage out of range. Example: products that take twice
/// the expected seconds halve `matmul`.
ProfileFit fit_profile(const TransformerShape& shape, const Cluster& cluster, const TrainingConfig& config,
                       int64_t stage, const ProfileParts& parts, const Efficiency& start, const std::string& source);

}  // namespace artifex_devices::planner
