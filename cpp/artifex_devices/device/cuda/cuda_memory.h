// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "artifex_devices/base/mutex.h"
#include "artifex_devices/device/allocator_options.h"
#include "artifex_devices/device/block.h"
#include "artifex_devices/device/cuda/gpus.h"
#include "artifex_devices/device/memory_space.h"

namespace artifex_devices {

/// Memory of one GPU, or host memory that its copy engines reach without staging (kind pinned_host). Thread-safe.
///
/// The kinds of AllocatorOptions: kDefault and kBfc take regions of at least 32 MiB from the driver, divide them, and
/// join neighbouring free extents again. An empty region is returned to the driver when memory is short, and at once
/// for a block that is marked for the system. kPlatform takes each block from the driver. kCudaAsync takes them from
/// the driver's stream-ordered pool.
///
/// No GPU work uses a block when it is reused. The library's copies hold their blocks until they end. A block whose
/// address another library knows is released after all work of the GPU has ended. In a forked child blocks are leaked,
/// as CUDA cannot be used there.
class CudaMemory final : public MemorySpace {
 public:
  /// The space of a GPU, created at the first call. Throws Unavailable for kCudaAsync on a GPU without pools.
  static CudaMemory& of(const cuda::Gpu& gpu, MemoryKind kind, AllocatorKind allocator);

  BlockRef allocate(int64_t bytes) override;
  std::shared_ptr<void> preallocate(int64_t bytes, std::string_view operation) override;
  MemorySpaceStats stats() const override;
  int cuda_ordinal() const noexcept override { return kind() == MemoryKind::kDevice ? gpu_.ordinal() : -1; }
  void wait_for_device() const override;
  void add_exported(const Block& block) override;
  void remove_exported(const Block& block) noexcept override;
  /// Returns all empty regions to the driver.
  void trim() noexcept;

 private:
  using Sizes = std::set<std::pair<int64_t, uint64_t>>;  // bytes and address of free extents
  struct Region {
    int64_t bytes = 0;
    int64_t in_use = 0;
    bool is_reserved = false;  // preallocated: stays
  };
  /// An extent of a region: a block in use, or free memory.
  struct Extent {
    int64_t bytes = 0;
    Sizes::node_type size = {};  // while in use: its entry of by_size_, because its release must not allocate

    bool is_free() const noexcept { return size.empty(); }
  };
  using Extents = std::map<uint64_t, Extent>;

  CudaMemory(const cuda::Gpu& gpu, MemoryKind kind, AllocatorKind allocator);
  void release(Block* block) noexcept override;

  bool divides_regions() const noexcept {
    return allocator_ == AllocatorKind::kDefault || allocator_ == AllocatorKind::kBfc;
  }
  /// Allocates memory from the driver; returns 0 if the driver has no memory left.
  uint64_t take_from_driver(int64_t bytes);
  void give_to_driver(uint64_t address) noexcept;
  uint64_t take_from_regions(int64_t bytes);
  uint64_t take_with_new_region(int64_t bytes);
  /// Adds a region with room for a block; returns 0 if the driver has no memory, even after trim().
  uint64_t new_region_for(int64_t bytes);
  void give_to_regions(uint64_t address, bool to_driver) noexcept;
  /// Adds a free region. Takes it from the driver first; returns 0 where that has no memory.
  uint64_t add_region(int64_t bytes, bool is_reserved);
  Extents::iterator add_free(uint64_t address, int64_t bytes);
  std::map<uint64_t, Region>::iterator region_of(uint64_t address) noexcept;
  /// Removes an empty region and returns its address, or 0 without an empty region.
  uint64_t take_empty_region() noexcept;
  void forget_region(std::map<uint64_t, Region>::iterator region) noexcept;

  const cuda::Gpu& gpu_;
  AllocatorKind allocator_;
  mutable Mutex<"CUDA memory"> mutex_;
  std::map<uint64_t, Region> regions_;  // by address
  Extents extents_;                     // of all regions, by address; without gaps, and no two free ones in a row
  Sizes by_size_;                       // the free ones
  MemorySpaceStats stats_;
};

}  // namespace artifex_devices
