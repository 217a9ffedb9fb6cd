// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/cost/transfer_cost.h"

namespace artifex_devices::planner {

TransferCost reached(TransferCost cost, double bytes, const Efficiency& efficiency, bool is_dispatch) noexcept {
  const bool is_network = cost.limit == "network";
  const Factor full = is_dispatch                       ? Factor::kDispatch
                      : is_network                      ? Factor::kNetwork
                      : cost.algorithm == kSumsInSwitch ? Factor::kNvls
                                                        : Factor::kLinkFraction;
  const Factor half = is_network ? Factor::kNetworkHalfBytes : Factor::kLinksHalfBytes;
  cost.transfer /= message_efficiency(bytes, efficiency[full], efficiency[half]);
  return cost;
}

}  // namespace artifex_devices::planner
