// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/memory_window.h"

#include <algorithm>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"

namespace artifex_devices {
namespace {

// Trivially destructible: windows may outlive static destruction.
constinit Mutex<"memory windows"> mutex;
MemoryWindow* open_windows = nullptr;

HeldOverFork g_windows_held_over_fork(mutex);

}  // namespace

MemoryWindow::MemoryWindow(ClientRef client)
    : client_(std::move(client)), marks_(static_cast<size_t>(client_->device_count())) {
  const std::lock_guard lock(mutex);
  next_ = open_windows;
  open_windows = this;
  for (size_t id = 0; id < marks_.size(); ++id) {
    Mark& mark = marks_[id];
    const Device::Watched now = client_->device(static_cast<int64_t>(id))->next_interval();
    mark.start = mark.now = now;
    mark.peak = now.in_use;
    // Earlier values belong to the other windows.
    for (MemoryWindow* other = next_; other; other = other->next_) {
      if (other->client_ == client_) other->marks_[id].peak = std::max(other->marks_[id].peak, now.peak);
    }
  }
}

MemoryWindow::~MemoryWindow() { close(); }

void MemoryWindow::next_interval_locked(const Client* client) noexcept {
  for (int64_t id = 0; id < client->device_count(); ++id) {
    const Device::Watched now = client->device(id)->next_interval();
    for (MemoryWindow* window = open_windows; window; window = window->next_) {
      if (window->client_.get() != client) continue;
      Mark& mark = window->marks_[static_cast<size_t>(id)];
      mark.peak = std::max(mark.peak, now.peak);
      mark.now = now;
    }
  }
}

std::vector<MemoryUse> MemoryWindow::use() {
  std::vector<MemoryUse> result(marks_.size());
  const std::lock_guard lock(mutex);
  if (open_) next_interval_locked(client_.get());
  for (size_t id = 0; id < marks_.size(); ++id) {
    const Mark& mark = marks_[id];
    result[id] = {.at_start = mark.start.in_use,
                  .in_use = mark.now.in_use,
                  .peak = mark.peak,
                  .allocated = mark.now.allocated - mark.start.allocated,
                  .freed = mark.now.freed - mark.start.freed};
  }
  return result;
}

void MemoryWindow::close() noexcept {
  const std::lock_guard lock(mutex);
  if (!open_) return;
  next_interval_locked(client_.get());
  open_ = false;
  bool last = true;
  MemoryWindow** link = &open_windows;
  while (*link) {
    if (*link == this) {
      *link = next_;
      continue;
    }
    last = last && (*link)->client_ != client_;
    link = &(*link)->next_;
  }
  if (!last) return;
  for (int64_t id = 0; id < client_->device_count(); ++id) client_->device(id)->stop_watching();
}

int64_t MemoryWindow::physical_bytes() const {
  if (client_->is_compile_only()) return 0;
  std::vector<const MemorySpace*> counted;  // several memories of a simulated machine may be one physical memory
  int64_t bytes = 0;
  for (int i = 0; i < client_->arenas(); ++i) {
    if (!client_->has_arena(i)) continue;  // of another process
    const MemorySpace* space = &client_->space(i);
    if (std::find(counted.begin(), counted.end(), space) != counted.end()) continue;
    counted.push_back(space);
    bytes += space->stats().bytes_in_use;
  }
  return bytes;
}

}  // namespace artifex_devices
