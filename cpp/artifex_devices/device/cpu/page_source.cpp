// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/page_source.h"

#include <algorithm>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/page_budget.h"
#include "artifex_devices/topology/system_files.h"

namespace artifex_devices {

std::byte* PageSource::take(int64_t bytes, bool huge) noexcept {
  if (std::byte* data = cut_reserve(bytes)) return data;
  const bool is_advised = !is_ordinary_;
  return take_pages(
      bytes,
      {.node = is_advised ? node_ : -1, .aligned = is_advised && bytes >= kHugePage / 2, .huge = is_advised && huge});
}

void PageSource::give(std::byte* data, int64_t bytes) noexcept {
  if (!give_to_reserve(data, bytes)) return_pages(data, bytes);
}

PageSource::Reserves::iterator PageSource::find(Reserves& reserves, const std::byte* data) noexcept {
  return std::ranges::find_if(reserves, [&](const auto& reserve) { return reserve->contains(data); });
}

std::byte* PageSource::cut_reserve(int64_t bytes) noexcept {
  if (!has_reserves_.load(std::memory_order_acquire)) return nullptr;
  const auto reserves = reserves_.lock();
  for (const auto& reserve : *reserves) {
    if (std::byte* data = reserve->cut(bytes)) return data;
  }
  return nullptr;
}

bool PageSource::is_preallocated(const std::byte* data) noexcept {
  if (!has_reserves_.load(std::memory_order_acquire)) return false;
  const auto reserves = reserves_.lock();
  return find(*reserves, data) != reserves->end();
}

PageSource::Preallocated PageSource::preallocated() noexcept {
  Preallocated found;
  if (!has_reserves_.load(std::memory_order_acquire)) return found;
  const auto reserves = reserves_.lock();
  for (const auto& reserve : *reserves) {
    found.bytes += reserve->used_bytes() + reserve->free_bytes();
    found.free_bytes += reserve->free_bytes();
  }
  return found;
}

bool PageSource::give_to_reserve(std::byte* data, int64_t bytes) noexcept {
  if (!has_reserves_.load(std::memory_order_acquire)) return false;
  std::unique_ptr<Reserve> done;
  {
    const auto reserves = reserves_.lock();
    const auto found = find(*reserves, data);
    if (found == reserves->end()) return false;
    poison(data, bytes);
    (*found)->give(data, bytes);
    done = remove_if_done(*reserves, found);
  }
  if (done) return_pages(done->data(), done->bytes());
  return true;
}

void PageSource::retire(const Reserve* retired) noexcept {
  std::unique_ptr<Reserve> done;
  {
    const auto reserves = reserves_.lock();
    const auto found = std::ranges::find(*reserves, retired, [](const auto& reserve) { return reserve.get(); });
    if (found == reserves->end()) return;
    (*found)->retire();
    done = remove_if_done(*reserves, found);
  }
  if (done) return_pages(done->data(), done->bytes());
}

std::unique_ptr<Reserve> PageSource::remove_if_done(Reserves& reserves, Reserves::iterator at) noexcept {
  if (!(*at)->is_done()) return nullptr;
  std::unique_ptr<Reserve> done = std::move(*at);
  reserves.erase(at);
  has_reserves_.store(!reserves.empty(), std::memory_order_release);
  return done;
}

std::shared_ptr<void> PageSource::preallocate(int64_t bytes, std::string_view operation) {
  if (bytes <= 0) return nullptr;
  constexpr int64_t kPiece = int64_t{64} << 20;  // touched between checks for Ctrl-C
  const int64_t wanted = Reserve::rounded(std::min(bytes, kAddressSpace));
  const auto free_bytes = [] {
    return std::min(available_memory_bytes().value_or(INT64_MAX),
                    std::max<int64_t>(usable_memory_bytes_now() - mapped_bytes() + Arena::total_cached_bytes(), 0));
  };
  int64_t free = free_bytes();
  if (wanted > free && Arena::trim_all() > 0) free = free_bytes();
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
    WorkerPool::process().parallel_for((wanted + kPiece - 1) / kPiece, kAnyLane, [&](int64_t i) {
      if (touched.load(std::memory_order_relaxed) &&
          !touch_pages(data + i * kPiece, std::min(kPiece, wanted - i * kPiece))) {
        touched.store(false, std::memory_order_relaxed);
      }
    });
    if (!touched.load(std::memory_order_relaxed)) refuse("the system has no pages for it");
    auto made = std::make_unique<Reserve>(data, wanted);
    const Reserve* reserve = made.get();
    // Created first, because nothing may fail once the reserve is on the list; retiring a reserve that is not on the
    // list does nothing.
    std::shared_ptr<void> held(nullptr, [this, reserve](void*) { retire(reserve); });
    const auto reserves = reserves_.lock();
    reserves->push_back(std::move(made));
    poison(data, wanted);
    has_reserves_.store(true, std::memory_order_release);
    return held;
  } catch (...) {
    return_pages(data, wanted);
    throw;
  }
}

}  // namespace artifex_devices
