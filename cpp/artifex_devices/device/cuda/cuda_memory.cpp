// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/cuda_memory.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "artifex_devices/base/blocking_call.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int64_t kBlockUnit = 512;                  // alignment and smallest block, as of cuMemAlloc
constexpr int64_t kRegionUnit = int64_t{2} << 20;    // pages of the driver
constexpr int64_t kRegionBytes = int64_t{32} << 20;  // smallest region

int64_t rounded_up(int64_t bytes, int64_t unit) noexcept { return (bytes + unit - 1) / unit * unit; }

constexpr size_t kAllocatorKinds = 4;
constexpr size_t kSpaceKinds = 2;  // device, pinned_host

struct CudaSpaces {
  Mutex<"CUDA memory spaces"> mutex;
  std::vector<std::array<CudaMemory*, kAllocatorKinds * kSpaceKinds>> of_gpu;  // never freed
};

CudaSpaces& cuda_spaces() {
  static auto* all = new CudaSpaces;  // first used under the GIL, when a client is created
  return *all;
}

}  // namespace

CudaMemory::CudaMemory(const cuda::Gpu& gpu, MemoryKind kind, AllocatorKind allocator)
    : MemorySpace(kind, kind != MemoryKind::kDevice, 0, kind != MemoryKind::kDevice),
      gpu_(gpu),
      allocator_(allocator) {}

CudaMemory& CudaMemory::of(const cuda::Gpu& gpu, MemoryKind kind, AllocatorKind allocator) {
  if (allocator == AllocatorKind::kCudaAsync && !gpu.facts().has_pools) {
    throw_error<Unavailable>(
        "make_client: the allocator kind CUDA_ASYNC requires memory pools, which {} (GPU {}) does not support; expected "
        "DEFAULT, BFC or PLATFORM; choose one of them",
        gpu.facts().name, gpu.ordinal());
  }
  if (kind != MemoryKind::kDevice) allocator = AllocatorKind::kBfc;
  CudaSpaces& all = cuda_spaces();
  const std::lock_guard lock(all.mutex);
  const auto ordinal = static_cast<size_t>(gpu.ordinal());
  if (all.of_gpu.size() <= ordinal) all.of_gpu.resize(ordinal + 1);
  const size_t slot = (kind == MemoryKind::kDevice ? 0 : kAllocatorKinds) + static_cast<size_t>(allocator);
  CudaMemory*& space = all.of_gpu[ordinal][slot];
  if (space == nullptr) space = new CudaMemory(gpu, kind, allocator);
  return *space;
}

uint64_t CudaMemory::take_from_driver(int64_t bytes) {
  constexpr std::string_view kOperation = "allocate";
  const cuda::Driver& driver = cuda::driver(kOperation);
  const cuda::ContextScope scope(driver, gpu_, kOperation);
  cuda::Address address = 0;
  cuda::Result result = cuda::kSuccess;
  const char* function = "cuMemAlloc";
  if (kind() != MemoryKind::kDevice) {
    void* host = nullptr;
    result = driver.allocate_host(&host, static_cast<size_t>(bytes), cuda::kPortable);
    address = reinterpret_cast<cuda::Address>(host);
    function = "cuMemHostAlloc";
  } else if (allocator_ == AllocatorKind::kCudaAsync) {
    // Without other work in its stream the allocation is complete after the wait, for all streams.
    result = driver.allocate_async(&address, static_cast<size_t>(bytes), gpu_.within());
    if (result == cuda::kSuccess) result = driver.synchronize_stream(gpu_.within());
    function = "cuMemAllocAsync";
  } else {
    result = driver.allocate(&address, static_cast<size_t>(bytes));
  }
  if (result == cuda::kOutOfMemory) return 0;
  driver.check(result, kOperation, function);
  return address;
}

void CudaMemory::give_to_driver(uint64_t address) noexcept {
  const cuda::Driver* driver = cuda::driver_for_release();
  if (driver == nullptr || driver->push_context(gpu_.context()) != cuda::kSuccess) return;
  // Errors cannot be reported here; at exit the driver may be gone already.
  if (kind() != MemoryKind::kDevice) {
    static_cast<void>(driver->free_host(reinterpret_cast<void*>(address)));
  } else if (allocator_ == AllocatorKind::kCudaAsync) {
    static_cast<void>(driver->free_async(address, gpu_.within()));
  } else {
    static_cast<void>(driver->free(address));
  }
  cuda::Context ours = nullptr;
  static_cast<void>(driver->pop_context(&ours));
}

CudaMemory::Extents::iterator CudaMemory::add_free(uint64_t address, int64_t bytes) {
  const auto extent = extents_.emplace(address, Extent{bytes}).first;
  try {
    by_size_.emplace(bytes, address);
  } catch (...) {
    extents_.erase(extent);
    throw;
  }
  return extent;
}

std::map<uint64_t, CudaMemory::Region>::iterator CudaMemory::region_of(uint64_t address) noexcept {
  return std::prev(regions_.upper_bound(address));
}

uint64_t CudaMemory::add_region(int64_t bytes, bool is_reserved) {
  const uint64_t address = take_from_driver(bytes);
  if (address == 0) return 0;
  try {
    const std::lock_guard lock(mutex_);
    const auto extent = add_free(address, bytes);
    try {
      regions_[address] = {bytes, 0, is_reserved};
    } catch (...) {
      by_size_.erase({bytes, address});
      extents_.erase(extent);
      throw;
    }
    stats_.bytes_mapped += bytes;
    if (is_reserved) stats_.bytes_preallocated += bytes;
  } catch (...) {
    give_to_driver(address);
    throw;
  }
  return address;
}

/// The smallest free extent that fits; 0 without one.
uint64_t CudaMemory::take_from_regions(int64_t bytes) {
  const auto found = by_size_.lower_bound({bytes, 0});
  if (found == by_size_.end()) return 0;
  const auto [room, address] = *found;
  if (room > bytes) add_free(address + static_cast<uint64_t>(bytes), room - bytes);
  Extent& extent = extents_.at(address);
  extent.bytes = bytes;
  extent.size = by_size_.extract(found);
  region_of(address)->second.in_use += bytes;
  return address;
}

uint64_t CudaMemory::new_region_for(int64_t bytes) {
  const int64_t least = rounded_up(bytes, kRegionUnit);
  uint64_t region = add_region(std::max(least, kRegionBytes), false);
  if (region == 0) {
    trim();
    region = add_region(std::max(least, kRegionBytes), false);
  }
  if (region == 0 && kRegionBytes > least) region = add_region(least, false);
  return region;
}

uint64_t CudaMemory::take_with_new_region(int64_t bytes) {
  while (new_region_for(bytes) != 0) {
    const std::lock_guard lock(mutex_);
    if (const uint64_t address = take_from_regions(bytes)) return address;  // else another thread has taken it
  }
  return 0;
}

void CudaMemory::give_to_regions(uint64_t address, bool to_driver) noexcept {
  uint64_t empty = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto region = region_of(address);
    const uint64_t region_end = region->first + static_cast<uint64_t>(region->second.bytes);
    auto extent = extents_.find(address);
    Sizes::node_type size = std::move(extent->second.size);
    region->second.in_use -= extent->second.bytes;
    // Free neighbours in the same region become one extent with it.
    const auto next = std::next(extent);
    if (next != extents_.end() && next->first < region_end && next->second.is_free()) {
      by_size_.erase({next->second.bytes, next->first});
      extent->second.bytes += next->second.bytes;
      extents_.erase(next);
    }
    if (extent->first > region->first && std::prev(extent)->second.is_free()) {
      const auto before = std::prev(extent);
      by_size_.erase({before->second.bytes, before->first});
      before->second.bytes += extent->second.bytes;
      extents_.erase(extent);
      extent = before;
    }
    size.value() = {extent->second.bytes, extent->first};
    by_size_.insert(std::move(size));
    if (region->second.in_use == 0 && to_driver && !region->second.is_reserved) {
      empty = region->first;
      forget_region(region);
    }
  }
  if (empty != 0) give_to_driver(empty);
}

void CudaMemory::forget_region(std::map<uint64_t, Region>::iterator region) noexcept {
  const auto [address, described] = *region;
  by_size_.erase({described.bytes, address});
  extents_.erase(address);
  stats_.bytes_mapped -= described.bytes;
  regions_.erase(region);
}

uint64_t CudaMemory::take_empty_region() noexcept {
  const std::lock_guard lock(mutex_);
  const auto region = std::ranges::find_if(
      regions_, [](const auto& each) { return each.second.in_use == 0 && !each.second.is_reserved; });
  if (region == regions_.end()) return 0;
  const uint64_t address = region->first;
  forget_region(region);
  return address;
}

void CudaMemory::trim() noexcept {
  while (const uint64_t address = take_empty_region()) give_to_driver(address);
}

BlockRef CudaMemory::allocate(int64_t bytes) {
  if (bytes < 0) throw_error("allocate: bytes is {}; expected 0 or more", bytes);
  static_cast<void>(cuda::driver("allocate"));  // not in a forked child, where the lock may be held for ever
  const int64_t capacity = rounded_up(std::max<int64_t>(bytes, 1), kBlockUnit);
  BlockRef block = unplaced_block(bytes, capacity);
  uint64_t address = 0;
  bool is_cached = false;
  if (divides_regions()) {
    {
      const std::lock_guard lock(mutex_);
      address = take_from_regions(capacity);
    }
    is_cached = address != 0;
    if (address == 0) address = take_with_new_region(capacity);
  } else {
    address = take_from_driver(capacity);
  }
  const std::lock_guard lock(mutex_);
  if (address == 0) {
    throw_error<OutOfMemory>(
        "RESOURCE_EXHAUSTED: allocate: no memory for {} bytes on GPU {}; {} bytes are in use by this process, {} are "
        "cached, and the GPU has {}; delete arrays or place smaller ones",
        bytes, gpu_.ordinal(), stats_.bytes_in_use, stats_.bytes_mapped - stats_.bytes_in_use,
        gpu_.facts().memory_bytes);
  }
  if (!divides_regions()) stats_.bytes_mapped += capacity;
  stats_.bytes_in_use += capacity;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  ++stats_.num_allocs;
  if (is_cached) ++stats_.cache_hits;
  place(block, reinterpret_cast<std::byte*>(address));
  return block;
}

void CudaMemory::release(Block* block) noexcept {
  remove_exported(*block);
  const Released released = take_apart(block);
  const auto address = reinterpret_cast<uint64_t>(released.data);
  const int64_t capacity = released.capacity;
  const bool to_driver = released.to_system && capacity >= kRegionUnit;
  if (cuda::driver_for_release() == nullptr) return;  // leaked in a forked child, where the lock may be held for ever
  if (released.is_exported) {
    // Of work that other libraries have started, which may be long, and may need the GIL to end.
    std::pair waiting(this, false);
    run_blocking(
        [](void* argument) {
          auto& [memory, is_idle] = *static_cast<std::pair<CudaMemory*, bool>*>(argument);
          try {
            memory->wait_for_device();
            is_idle = true;
          } catch (...) {  // NOLINT(bugprone-empty-catch) it cannot be reported
          }
        },
        &waiting);
    if (!waiting.second) return;  // leaked, as the GPU may still use it
  }
  {
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= capacity;
    if (!divides_regions()) stats_.bytes_mapped -= capacity;
  }
  if (divides_regions()) {
    give_to_regions(address, to_driver);
  } else {
    give_to_driver(address);
  }
}

std::shared_ptr<void> CudaMemory::preallocate(int64_t bytes, std::string_view operation) {
  const int64_t region_bytes = rounded_up(std::max<int64_t>(bytes, 1), kRegionUnit);
  const uint64_t region = add_region(region_bytes, true);
  if (region == 0) {
    throw_error<OutOfMemory>(
        "RESOURCE_EXHAUSTED: {}: GPU {} has no {} bytes to preallocate, of {}; expected a smaller memory_fraction; write "
        "preallocate=False, or end other processes that use the GPU",
        operation, gpu_.ordinal(), region_bytes, gpu_.facts().memory_bytes);
  }
  return {nullptr, [this, region](void*) {  // also called if the pointer cannot be created
            if (cuda::driver_for_release() == nullptr) return;
            bool is_empty = false;
            {
              const std::lock_guard lock(mutex_);
              Region& reserved = regions_.find(region)->second;
              reserved.is_reserved = false;
              stats_.bytes_preallocated -= reserved.bytes;
              is_empty = reserved.in_use == 0;
            }
            if (is_empty) trim();
          }};
}

void CudaMemory::add_exported(const Block& block) { gpu_.add_exported(block.address(), block.bytes()); }

void CudaMemory::remove_exported(const Block& block) noexcept {
  if (cuda::driver_for_release() == nullptr) return;  // a forked child, where the lock may be held for ever
  gpu_.remove_exported(block.address());
}

void CudaMemory::wait_for_device() const {
  constexpr std::string_view kOperation = "wait";
  const cuda::Driver& driver = cuda::driver(kOperation);
  const cuda::ContextScope scope(driver, gpu_, kOperation);
  driver.check(driver.synchronize_context(), kOperation, "cuCtxSynchronize");
}

MemorySpaceStats CudaMemory::stats() const {
  if (cuda::driver_for_release() == nullptr) return {};
  const std::lock_guard lock(mutex_);
  MemorySpaceStats now = stats_;
  now.bytes_cached = now.bytes_mapped - now.bytes_in_use;
  if (kind() == MemoryKind::kPinnedHost) now.bytes_locked = now.bytes_mapped;
  return now;
}

}  // namespace artifex_devices
