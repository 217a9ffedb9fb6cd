// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "artifex_devices/device/memory_kind.h"

namespace artifex_devices {

class Block;
class BlockRef;

/// Physical state of one memory space, in bytes.
struct MemorySpaceStats {
  int64_t bytes_in_use = 0;  // capacity of blocks with users
  int64_t bytes_cached = 0;  // blocks cached for reuse
  int64_t bytes_mapped = 0;  // taken from the system: in use + cached + chunk remainders
  int64_t peak_bytes_in_use = 0;
  int64_t num_allocs = 0;
  int64_t cache_hits = 0;
  int64_t bytes_locked = 0;        // locked pages of blocks in use and cached blocks
  int64_t bytes_not_locked = 0;    // in use in pinned memory, but the system refused to lock them
  int64_t bytes_preallocated = 0;  // taken up front; part of bytes_mapped
};

/// Memory with one owner and one way to reach it: host memory near a NUMA node, or the memory of GPUs. A space belongs
/// to the process, is never destroyed, and is shared by clients. Thread-safe.
class MemorySpace {
 public:
  MemorySpace(const MemorySpace&) = delete;
  MemorySpace& operator=(const MemorySpace&) = delete;

  /// Allocates `bytes` of memory (0 gives a valid empty block), aligned to 64 bytes and not cleared. Throws
  /// OutOfMemory.
  virtual BlockRef allocate(int64_t bytes) = 0;
  /// Takes `bytes` from the system before they are needed; they are returned once the result is destroyed and they are
  /// unused. Throws OutOfMemory and Interrupted.
  virtual std::shared_ptr<void> preallocate(int64_t bytes, std::string_view operation) = 0;
  virtual MemorySpaceStats stats() const = 0;
  /// The number that CUDA gives to the GPU whose memory it is; -1 for other memory.
  virtual int cuda_ordinal() const noexcept { return -1; }
  /// Waits for all work of the GPU that owns the memory, including work of other libraries.
  virtual void wait_for_device() const {}
  /// Wraps memory of this space that another library owns; `release` is called once when the last reference is
  /// released.
  BlockRef foreign_block(void* data, int64_t bytes, std::function<void()> release);
  /// Called by Block::mark_as_exported, and before an exported block is released.
  virtual void add_exported(const Block&) {}
  virtual void remove_exported(const Block&) noexcept {}

  MemoryKind kind() const noexcept { return kind_; }
  /// Whether code of the host may read and write its blocks; see Block.
  bool is_host_readable() const noexcept { return host_readable_; }
  /// Whether the host's code can use Block::device_data(), if only on behalf of the device: not in the memory of a real
  /// GPU, which only a copy engine (device/copy_engine.h) reaches.
  bool is_host_memory() const noexcept { return host_memory_; }
  /// Distance from Block::device_data() to Block::address().
  int64_t address_offset() const noexcept { return address_offset_; }

 protected:
  MemorySpace(MemoryKind kind, bool host_readable, int64_t address_offset, bool host_memory = true) noexcept
      : kind_(kind), host_readable_(host_readable), host_memory_(host_memory), address_offset_(address_offset) {}
  virtual ~MemorySpace() = default;

  // For spaces whose blocks have no state of the allocator.
  /// A block without memory; dropping it frees nothing.
  static BlockRef unplaced_block(int64_t bytes, int64_t capacity);
  /// Gives the block its memory. From now on release() takes it back.
  void place(const BlockRef& block, std::byte* data) noexcept;
  struct Released {
    std::byte* data;
    int64_t capacity;
    bool to_system;    // Block::mark_for_system
    bool is_exported;  // Block::mark_as_exported
  };
  /// The memory of a block that is released. Destroys the block.
  static Released take_apart(Block* block) noexcept;

 private:
  friend class BlockRef;
  /// Takes back a block without users.
  virtual void release(Block* block) noexcept = 0;

  MemoryKind kind_;
  bool host_readable_;
  bool host_memory_;
  int64_t address_offset_;
};

/// Whether an array in `space` can share the memory of `block`. Memory of the caller has ordinary pages: it may be used
/// for any kind of host memory except locked pages. The nodes of host memory need not be equal.
bool can_hold(const MemorySpace& space, const Block& block) noexcept;

}  // namespace artifex_devices
