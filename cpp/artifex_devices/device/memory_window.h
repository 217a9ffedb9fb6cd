// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "artifex_devices/base/recorder.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {

/// Memory use of arrays on one device while a window was open, in logical bytes including replicas.
struct MemoryUse {
  int64_t at_start = 0;
  int64_t in_use = 0;  // now, or when the window closed
  int64_t peak = 0;    // at least at_start
  int64_t allocated = 0;
  int64_t freed = 0;
};

/// Measures memory use on the devices of one client from its construction to close(). Any number may be open at once,
/// nested or overlapping, on any threads; each has its own peaks. Concurrent
/// allocations during opening or closing may be counted in part.
class MemoryWindow final : RecorderSink {
 public:
  explicit MemoryWindow(ClientRef client);
  ~MemoryWindow();

  const ClientRef& client() const noexcept { return client_; }
  /// Returns the use by device id; the use so far while the window is open.
  IdVector<DeviceId, MemoryUse> use();
  /// Bytes in use now, by all clients, in the physical memories behind this client's devices.
  int64_t physical_bytes() const;
  /// Fixes the numbers. Further calls do nothing.
  void close() noexcept;

 private:
  void take_memory(const MemoryChange& change) noexcept override;
  void read_locked() noexcept;

  ClientRef client_;
  IdVector<DeviceId, MemoryUse> use_;
};

}  // namespace artifex_devices
