// SPDX-License-Identifier: Apache-2.0
// The part of Arena that allocates from memory preallocated by a client.
#include "artifex_devices/device/cpu/arena_reserve.h"

#include <algorithm>
#include <atomic>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/cpu/arena_state.h"
#include "artifex_devices/topology/system_files.h"

namespace artifex_devices {

std::byte* ArenaReserve::cut(int64_t bytes) noexcept {
  const auto units = static_cast<size_t>(rounded(bytes) / kUnit);
  size_t run = 0;
  for (size_t i = 0; i < used_.size(); ++i) {
    run = used_[i] ? 0 : run + 1;
    if (run < units) continue;
    const size_t first = i + 1 - units;
    for (size_t unit = first; unit <= i; ++unit) used_[unit] = true;
    used_units_ += static_cast<int64_t>(units);
    return data_ + static_cast<int64_t>(first) * kUnit;
  }
  return nullptr;
}

void ArenaReserve::give(std::byte* data, int64_t bytes) noexcept {
  const auto units = static_cast<size_t>(rounded(bytes) / kUnit);
  const auto first = static_cast<size_t>((data - data_) / kUnit);
  for (size_t unit = first; unit < first + units; ++unit) used_[unit] = false;
  used_units_ -= static_cast<int64_t>(units);
}

Arena::State::~State() = default;

std::byte* Arena::State::map(int64_t bytes, bool huge) noexcept {
  if (std::byte* data = cut_reserve(bytes)) return data;
  const bool ordinary = arena->kind() == MemoryKind::kUnpinnedHost;
  return take_pages(
      bytes,
      {.node = ordinary ? -1 : arena->node(), .aligned = !ordinary && bytes >= kMappedFrom, .huge = huge && !ordinary});
}

void Arena::State::unmap(std::byte* data, int64_t bytes) noexcept {
  if (!unmap_reserve(data, bytes)) return_pages(data, bytes);
}

std::byte* Arena::State::cut_reserve(int64_t bytes) noexcept {
  if (!has_reserves.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(reserves_mutex);
  for (const auto& reserve : reserves) {
    if (reserve->is_retired) continue;
    std::byte* data = reserve->cut(bytes);
    if (!data) continue;
    reserved_free.fetch_sub(ArenaReserve::rounded(bytes), std::memory_order_relaxed);
    return data;
  }
  return nullptr;
}

bool Arena::State::is_in_reserve(const std::byte* data) noexcept {
  if (!has_reserves.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(reserves_mutex);
  return std::ranges::any_of(reserves, [&](const auto& reserve) { return reserve->contains(data); });
}

bool Arena::State::unmap_reserve(std::byte* data, int64_t bytes) noexcept {
  if (!has_reserves.load(std::memory_order_acquire)) return false;
  std::unique_ptr<ArenaReserve> unused;
  {
    const std::lock_guard lock(reserves_mutex);
    const auto found = std::ranges::find_if(reserves, [&](const auto& reserve) { return reserve->contains(data); });
    if (found == reserves.end()) return false;
    ArenaReserve& reserve = **found;
    poison(data, bytes);
    reserve.give(data, bytes);
    (reserve.is_retired ? reserved_bytes : reserved_free)
        .fetch_add(reserve.is_retired ? -ArenaReserve::rounded(bytes) : ArenaReserve::rounded(bytes),
                   std::memory_order_relaxed);
    unused = take_unused_locked(found);
  }
  if (unused) return_pages(unused->data(), unused->bytes());
  return true;
}

void Arena::State::retire_reserve(const ArenaReserve* retired) noexcept {
  std::unique_ptr<ArenaReserve> unused;
  {
    const std::lock_guard lock(reserves_mutex);
    const auto found = std::ranges::find_if(reserves, [&](const auto& reserve) { return reserve.get() == retired; });
    if (found == reserves.end()) return;
    ArenaReserve& reserve = **found;
    reserve.is_retired = true;
    // Pieces in use count until they are returned.
    reserved_free.fetch_sub(reserve.free_bytes(), std::memory_order_relaxed);
    reserved_bytes.fetch_sub(reserve.free_bytes(), std::memory_order_relaxed);
    unused = take_unused_locked(found);
  }
  if (unused) return_pages(unused->data(), unused->bytes());
}

std::unique_ptr<ArenaReserve> Arena::State::take_unused_locked(
    std::vector<std::unique_ptr<ArenaReserve>>::iterator at) noexcept {
  if (!(*at)->is_retired || !(*at)->is_unused()) return nullptr;
  std::unique_ptr<ArenaReserve> unused = std::move(*at);
  reserves.erase(at);
  has_reserves.store(!reserves.empty(), std::memory_order_release);
  return unused;
}

std::shared_ptr<void> Arena::preallocate(int64_t bytes, std::string_view operation) {
  if (bytes <= 0) return nullptr;
  constexpr int64_t kLargest = int64_t{1} << 47;  // user address space
  constexpr int64_t kPiece = int64_t{64} << 20;   // touched between checks for Ctrl-C
  const int64_t wanted = ArenaReserve::rounded(std::min(bytes, kLargest));
  const auto free_bytes = [] {
    return std::min(available_memory_bytes().value_or(INT64_MAX),
                    std::max<int64_t>(usable_memory_bytes_now() - mapped_bytes() + total_cached_bytes(), 0));
  };
  int64_t free = free_bytes();
  if (wanted > free && trim_all() > 0) free = free_bytes();
  const auto refuse = [&](std::string_view why) {
    throw_error<OutOfMemory>(
        "RESOURCE_EXHAUSTED: {}: {} bytes cannot be preallocated on NUMA node {}: {}; expected at most the {} bytes "
        "that are free; lower memory_fraction, or leave preallocate out",
        operation, wanted, node_, why, free);
  };
  if (wanted > free) refuse("that is more than is free");
  std::byte* data = take_pages(wanted, {.node = node_, .aligned = true, .huge = true});
  if (!data) refuse("the system has no address space for it");
  try {
    // Touched by several cores, because the system clears pages; they are bound to the node whichever core touches
    // them.
    check_interrupt();
    std::atomic<bool> touched{true};
    WorkerPool::process().parallel_for((wanted + kPiece - 1) / kPiece, -1, [&](int64_t i) {
      if (touched.load(std::memory_order_relaxed) &&
          !touch_pages(data + i * kPiece, std::min(kPiece, wanted - i * kPiece))) {
        touched.store(false, std::memory_order_relaxed);
      }
    });
    if (!touched.load(std::memory_order_relaxed)) refuse("the system has no pages for it");
    auto made = std::make_unique<ArenaReserve>(data, wanted);
    const ArenaReserve* reserve = made.get();
    // Created first, because nothing may fail once the reserve is on the list; retiring one that is not on the list
    // does nothing.
    std::shared_ptr<void> held(nullptr, [this, reserve](void*) { state_->retire_reserve(reserve); });
    const std::lock_guard lock(state_->reserves_mutex);
    state_->reserves.push_back(std::move(made));
    poison(data, wanted);
    state_->reserved_bytes.fetch_add(wanted, std::memory_order_relaxed);
    state_->reserved_free.fetch_add(wanted, std::memory_order_relaxed);
    state_->has_reserves.store(true, std::memory_order_release);
    return held;
  } catch (...) {
    return_pages(data, wanted);
    throw;
  }
}

}  // namespace artifex_devices
