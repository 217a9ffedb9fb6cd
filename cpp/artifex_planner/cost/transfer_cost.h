// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "artifex_planner/cost/efficiency.h"
#include "artifex_planner/fields.h"

namespace artifex_devices::planner {

/// Cost of one algorithm that moves bytes between devices. seconds = latency + transfer.
struct TransferCost {
  std::string_view algorithm;          // "ring, both directions", ...
  std::string_view limit = "nothing";  // resource that the transfer waits for: "links", "network", ...
  double latency = 0;                  // seconds that do not depend on bytes
  double transfer = 0;                 // seconds of bytes on the busiest link
  bool is_bound = false;               // a lower bound that no program is known to reach
  double seconds() const noexcept { return latency + transfer; }
};
void visit_fields(FieldsOf<TransferCost> auto& cost, const auto& visit) {
  visit("latency", cost.latency);
  visit("transfer", cost.transfer);
  visit("algorithm", cost.algorithm);
  visit("limit", cost.limit);
}

/// Name of the algorithm of all-reduces whose sums the switch of a node computes.
inline constexpr std::string_view kSumsInSwitch = "sums in the switch";

/// A cost at published rates, with the transfer at the part of the rate that messages of `bytes` reach. With
/// `is_dispatch` links and network reach Factor::kDispatch, as in the exchange of experts' tokens.
TransferCost reached(TransferCost cost, double bytes, const Efficiency& efficiency, bool is_dispatch = false) noexcept;

/// The expected cost, and the one at published rates, which is a bound.
struct TransferPrice {
  TransferCost expected;
  TransferCost bound;
};

}  // namespace artifex_devices::planner
