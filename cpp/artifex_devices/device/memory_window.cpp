// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/memory_window.h"

#include <algorithm>
#include <cstdlib>

namespace artifex_devices {

MemoryWindow::MemoryWindow(ClientRef client) : client_(std::move(client)), use_(client_->device_count()) {
  const auto held = lock();
  attach_locked(Recorded::kMemory);
  for (const DeviceId id : use_.ids()) {
    const int64_t bytes = client_->device(id)->bytes_in_use();
    use_[id] = {.at_start = bytes, .in_use = bytes, .peak = bytes};
  }
}

MemoryWindow::~MemoryWindow() { close(); }

void MemoryWindow::take_memory(const MemoryChange& change) noexcept {
  if (&change.device.client() != client_.get()) return;
  MemoryUse& use = use_[change.device.id()];
  use.peak = std::max(use.peak, change.in_use);
  (change.bytes < 0 ? use.freed : use.allocated) += std::abs(change.bytes);
}

// Reads the bytes in use from the devices: changes of several threads do not come in their order.
void MemoryWindow::read_locked() noexcept {
  for (const DeviceId id : use_.ids()) {
    MemoryUse& use = use_[id];
    use.in_use = client_->device(id)->bytes_in_use();
    use.peak = std::max(use.peak, use.in_use);
  }
}

IdVector<DeviceId, MemoryUse> MemoryWindow::use() {
  const auto held = lock();
  if (is_attached_locked()) read_locked();
  return use_;
}

void MemoryWindow::close() noexcept {
  const auto held = lock();
  if (!is_attached_locked()) return;
  read_locked();
  detach_locked();
}

int64_t MemoryWindow::physical_bytes() const {
  if (client_->is_compile_only()) return 0;
  std::vector<const MemorySpace*> counted;  // several memories of a simulated machine may be one physical memory
  int64_t bytes = 0;
  for (const ArenaIndex i : IdRange<ArenaIndex>(client_->arenas())) {
    if (!client_->has_arena(i)) continue;  // of another process
    const MemorySpace* space = &client_->space(i);
    if (std::find(counted.begin(), counted.end(), space) != counted.end()) continue;
    counted.push_back(space);
    bytes += space->stats().bytes_in_use;
  }
  return bytes;
}

}  // namespace artifex_devices
