// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace artifex_devices {

/// Behind transfer_counters().
struct AtomicTransferCounters {
  std::atomic<int64_t> host_to_device_bytes{0};
  std::atomic<int64_t> device_to_host_bytes{0};
  std::atomic<int64_t> device_to_device_bytes{0};
};
inline constinit AtomicTransferCounters g_transfer_counters;

}  // namespace artifex_devices
