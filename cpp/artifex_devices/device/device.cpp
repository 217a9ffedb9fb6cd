// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/base/atomic_max.h"
#include "artifex_devices/base/recorder.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {
const std::string& Device::platform() const noexcept { return client_->platform(); }
const std::string& Device::device_kind() const noexcept {
  if (!addressable_ && client_->backend().has_own_memory()) return facts_elsewhere().kind;
  return client_->backend().device_kind(local_id_);
}
std::string Device::to_string() const { return fmt::format("{}:{}", platform(), id_.number()); }
std::string Device::repr() const { return client_->backend().repr(*this); }

const CpuDomain& Device::domain() const noexcept {
  const auto domain = static_cast<size_t>(domain_);
  return addressable_ ? client_->machine().cpu_domains()[domain] : client_->process(process_index_).domains[domain];
}

Arena& Client::shared_arena(const Device& nearest, int64_t bytes) const noexcept {
  constexpr int64_t kFrom = int64_t{4} << 20;  // smaller results fit the caches
  const auto here = std::ranges::count_if(arenas_, [](const Arena* arena) { return arena != nullptr; });
  Arena& near = nearest.arena();
  return here > 1 && bytes >= kFrom ? Arena::interleaved(near.is_caching()) : near;
}

MemorySpace& Device::space(MemoryKind kind) const noexcept { return client_->space(arena_, kind); }
Arena& Device::arena() const noexcept { return client_->arena(arena_); }
Arena& Device::arena(MemoryKind kind) const noexcept { return client_->arena(arena_, kind); }
bool Device::is_compile_only() const noexcept { return client_->is_compile_only(); }
int64_t Device::memory_bytes() const noexcept {
  const Backend& backend = client_->backend();
  const std::optional<int64_t> own =
      !addressable_ && backend.has_own_memory() ? facts_elsewhere().memory_bytes : backend.memory_bytes(local_id_);
  return own.value_or(client_->memory_bytes_per_device(arena_));
}

const DeviceFacts& Device::facts_elsewhere() const noexcept {
  return client_->process(process_index_).devices[static_cast<size_t>(local_id_)];
}

void Device::set_bytes_limit(std::optional<int64_t> limit) noexcept {
  limit_.store(limit ? std::max<int64_t>(*limit, 0) : -1, std::memory_order_relaxed);
}

std::optional<int64_t> Device::bytes_limit() const noexcept {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  return limit < 0 ? std::nullopt : std::optional(limit);
}

bool Device::try_charge(int64_t bytes) noexcept {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  int64_t in_use = 0;
  if (limit < 0) {
    in_use = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  } else {
    int64_t before = in_use_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit - before) return false;
    } while (!in_use_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    in_use = before + bytes;
  }
  atomic_max(peak_, in_use);
  atomic_max(largest_, bytes);
  allocs_.fetch_add(1, std::memory_order_relaxed);
  if (is_recorded(Recorded::kMemory)) record_change(bytes, in_use);
  return true;
}

void Device::discharge(int64_t bytes) noexcept {
  const int64_t before = in_use_.fetch_sub(bytes, std::memory_order_relaxed);
  if (is_recorded(Recorded::kMemory)) record_change(-bytes, before - bytes);
}

void Device::record_change(int64_t bytes, int64_t in_use) const noexcept { record(MemoryChange{*this, bytes, in_use}); }

DeviceMemoryStats Device::memory_stats() const noexcept {
  const int64_t in_use = in_use_.load(std::memory_order_relaxed);
  return {
      .bytes_in_use = in_use,
      // An allocation in `in_use` may not have raised the peak yet.
      .peak_bytes_in_use = std::max(peak_.load(std::memory_order_relaxed), in_use),
      .bytes_limit = bytes_limit().value_or(memory_bytes()),
      .bytes_reserved = reserved_.load(std::memory_order_relaxed),
      .largest_alloc_size = largest_.load(std::memory_order_relaxed),
      .num_allocs = allocs_.load(std::memory_order_relaxed),
  };
}

}  // namespace artifex_devices
