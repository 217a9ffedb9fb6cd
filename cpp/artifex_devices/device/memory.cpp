// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/memory.h"

#include <algorithm>

#include "artifex_devices/base/atomic_max.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

std::optional<MemoryKind> kind_of(std::string_view name) noexcept {
  if (name == "default") return MemoryKind::kDevice;
  if (name == "pinned") return MemoryKind::kPinnedHost;
  for (const MemoryKind kind : kMemoryKinds) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

constexpr std::string_view kKinds = "device (also: default), pinned_host (also: pinned), unpinned_host";

}  // namespace

std::string Memory::to_string() const {
  const char* name = kind_ == MemoryKind::kPinnedHost     ? "PinnedHostMemory"
                     : kind_ == MemoryKind::kUnpinnedHost ? "UnpinnedHostMemorySpace"
                     : platform() == "cpu"                ? "CpuDeviceMemory"
                                                          : "DeviceMemory";
  return fmt::format("{}(id={}, process_index={}, client={})", name, id(), process_index().number(), platform());
}

std::string Memory::repr() const {
  if (kind_ != MemoryKind::kDevice) {
    return fmt::format("{}_{}", kind_ == MemoryKind::kPinnedHost ? "PINNED_HOST" : "UNPINNED_HOST", id());
  }
  std::string name = device_->platform();
  for (char& c : name) c = static_cast<char>(c - 'a' + 'A');  // "cpu", "gpu" or "tpu"
  return fmt::format("{}_DEVICE_{}", name, id());
}

MemorySpace& Memory::space() const {
  if (device_->is_compile_only()) {
    throw_error<Unavailable>(
        "memory: {} has no memory: it is for planning only, of a simulated cluster or a topology; take a device of "
        "this machine",
        device_->to_string());
  }
  if (!device_->is_addressable()) {
    throw_error<NotAddressable>(
        "memory: {} belongs to process {}; expected a device of this process, {}; call it there", device_->to_string(),
        device_->process_index().number(), device_->client().process_index().number());
  }
  return device_->space(kind_);
}

DeviceMemoryStats Memory::stats() const noexcept {
  if (kind_ == MemoryKind::kDevice) return device_->memory_stats();
  const int64_t in_use = in_use_.load(std::memory_order_relaxed);
  return {
      .bytes_in_use = in_use,
      .peak_bytes_in_use = std::max(peak_.load(std::memory_order_relaxed), in_use),
      .bytes_limit = device_->memory_bytes(),
      .bytes_reserved = reserved_.load(std::memory_order_relaxed),
      .largest_alloc_size = largest_.load(std::memory_order_relaxed),
      .num_allocs = allocs_.load(std::memory_order_relaxed),
  };
}

void Memory::charge(int64_t bytes) noexcept {
  atomic_max(peak_, in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  atomic_max(largest_, bytes);
  allocs_.fetch_add(1, std::memory_order_relaxed);
}

Memory& Device::memory(MemoryKind kind) {
  Memories* made = memories_.load(std::memory_order_acquire);
  if (made == nullptr) {
    auto* fresh =
        new Memories{{this, MemoryKind::kDevice}, {this, MemoryKind::kPinnedHost}, {this, MemoryKind::kUnpinnedHost}};
    if (memories_.compare_exchange_strong(made, fresh, std::memory_order_acq_rel, std::memory_order_acquire)) {
      made = fresh;
    } else {
      delete fresh;
    }
  }
  switch (kind) {
    case MemoryKind::kDevice:
      break;
    case MemoryKind::kPinnedHost:
      return made->pinned;
    case MemoryKind::kUnpinnedHost:
      return made->unpinned;
  }
  return made->device;
}

Device::~Device() { delete memories_.load(std::memory_order_acquire); }

bool Device::charge_host(int64_t bytes, MemoryKind kind) {
  memory(kind).charge(bytes);
  return true;
}

void Device::discharge_host(int64_t bytes, MemoryKind kind) noexcept { memory(kind).discharge(bytes); }

void Device::add_reserved(int64_t bytes, MemoryKind kind) noexcept {
  if (kind == MemoryKind::kDevice) {
    reserved_.fetch_add(bytes, std::memory_order_relaxed);
  } else {
    memory(kind).add_reserved(bytes);
  }
}

MemoryKind memory_kind_of_device(const Device& device, std::string_view name) {
  if (const auto kind = kind_of(name)) return *kind;
  throw_error<Unavailable>(
      "memory: kind {:?} is unknown on {}; expected one of its memory kinds: {}; write one of them", name,
      device.to_string(), kKinds);
}

std::optional<MemoryKind> canonical_memory_kind(std::optional<std::string_view> name,
                                                const std::vector<Device*>& devices) {
  if (devices.empty()) {
    if (!name) return std::nullopt;
    throw_error(
        "check_and_canonicalize_memory_kind: no device can address memory_kind {:?}, as the list of devices is empty; "
        "give at least one device, or None for the kind",
        *name);
  }
  if (!name) return MemoryKind::kDevice;
  if (const auto kind = kind_of(*name)) return kind;
  throw_error(
      "check_and_canonicalize_memory_kind: memory_kind {:?} is unknown on {}{}; expected one of: {}; write one of them",
      *name, devices[0]->to_string(),
      devices.size() > 1 ? fmt::format(" and the {} others", devices.size() - 1) : std::string(), kKinds);
}

}  // namespace artifex_devices
