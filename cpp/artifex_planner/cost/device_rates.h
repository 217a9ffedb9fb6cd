// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "artifex_devices/cluster/accelerator_catalogue.h"
#include "artifex_devices/cluster/cluster.h"

namespace artifex_devices::planner {

/// Rates and memory of one device.
struct DeviceRates {
  std::array<std::optional<double>, kMatmulFormatCount> peak_flops;  // FLOP/s
  double memory_bandwidth = 0;                                       // bytes/s
  int64_t memory_bytes = 0;
  std::string_view operation = "plan_step";  // named in errors about unknown rates

  /// FLOP/s of products in a format. Throws Unavailable if they are not published.
  double peak(MatmulFormat format) const;
};

/// A device of a cluster: the numbers of a chip, divided among its devices. Throws Unavailable where the memory or its
/// bandwidth is not known.
DeviceRates device_rates(const Cluster& cluster, std::string_view operation);

}  // namespace artifex_devices::planner
