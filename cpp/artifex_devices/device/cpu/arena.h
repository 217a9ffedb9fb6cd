// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/device/block.h"
#include "artifex_devices/device/memory_space.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

class ArenaBlocks;

/// The memory of one kind near one NUMA node, or interleaved over all nodes, with a caching allocator. It belongs to
/// the process, is never destroyed, and is shared by clients.
///
/// Small sizes come from size classes within 2 MiB chunks, aligned to 64 bytes. Sizes of 1 MiB and more are mapped
/// separately, aligned to 2 MiB and advised to be huge pages; the first writer touches them first. Freed blocks are
/// cached up to `config().cache_bytes` over all arenas. The least recently freed are dropped first, also if a memory
/// limit would be exceeded or an allocation fails. A forked child does not inherit free mapped blocks. No lock is held
/// during a system call except fork, whose child can allocate (docs/decisions/0022). Thread-safe.
///
/// Kinds: pages of `device` and `pinned_host` are bound to the node if there are several nodes; pages of
/// `unpinned_host` are neither bound nor advised. Pages of `pinned_host` are locked, also while cached. If the system
/// refuses to lock more (RLIMIT_MEMLOCK), the block is used without the lock, as reported by Block::is_locked, the
/// stats and page_lock_trouble; its next user tries again. An arena without a cache maps every block separately and
/// unmaps it at once.
///
/// The memory of emulated GPUs (device/emulated_gpu) has separate arenas. It is ordinary memory, but its reported
/// addresses are unmapped, and only code that runs on the device uses it (Block::device_data).
class Arena final : public MemorySpace {
 public:
  /// Returns the arena of NUMA node `logical_index` of the live machine; indexes beyond its nodes wrap around.
  static Arena& of_node(int logical_index, MemoryKind kind = MemoryKind::kDevice, bool caching = true);
  /// Returns the memory of emulated GPUs near that node.
  static Arena& of_emulated_gpus(int logical_index, bool caching = true);
  /// Returns the arena whose pages are interleaved over all nodes, for large results that devices of several nodes
  /// read. Its kind is device, its node() is kAllNodes.
  static Arena& interleaved(bool caching = true);
  static constexpr int kAllNodes = -2;
  ~Arena() override;

  /// Allocates `bytes` of memory (0 gives a valid empty block), aligned to 64 bytes and not cleared. Throws
  /// OutOfMemory, with the bytes requested, in use and cached, if the system has no memory even after the caches are
  /// dropped.
  BlockRef allocate(int64_t bytes) override;

  MemorySpaceStats stats() const override;
  int node() const noexcept { return node_; }
  bool is_caching() const noexcept { return caching_; }

  /// Takes `bytes` (rounded up to 2 MiB) from the system and touches them; blocks of 1 MiB and more are taken from them
  /// first. They are returned to the system once the result is destroyed and they are unused. Throws OutOfMemory if
  /// there is too little free memory, and Interrupted.
  std::shared_ptr<void> preallocate(int64_t bytes, std::string_view operation) override;

  /// Returns the cached blocks of all arenas to the system, and returns their bytes. Small blocks whose chunk has
  /// blocks in use remain.
  static int64_t trim_all();
  static int64_t total_cached_bytes() noexcept;

  /// Private to device/cpu.
  ArenaBlocks& blocks() const noexcept { return *blocks_; }

 private:
  friend const std::vector<Arena*>& all_arenas();
  /// An address plus this offset is never mapped: it is beyond the user's half of a 48-bit address space and, in a
  /// larger one, beyond the addresses that the system uses by default.
  static constexpr int64_t kUnmappedOffset = int64_t{1} << 52;
  enum class Reader : uint8_t { kHost, kEmulatedGpu };

  Arena(int node, MemoryKind kind, bool caching, Reader reader);
  static const std::vector<Arena*>* make_all();
  static Arena& find_on_node(int logical_index, size_t group, bool caching);
  void release(Block* block) noexcept override;
  /// After a failure, drops cached blocks, waits for threads that are unmapping pages, and tries again. Throws
  /// OutOfMemory.
  Block* take_again(int64_t bytes);

  int node_;
  bool caching_;
  std::unique_ptr<ArenaBlocks> blocks_;
};

/// Describes the first failure to lock pages in this process, with the limit and how to raise it; empty if there was
/// none.
std::string page_lock_trouble();
/// Returns whether there was such a failure. Fast.
bool has_page_lock_trouble() noexcept;
/// Returns RLIMIT_MEMLOCK in bytes, -1 for unlimited. It does not apply to privileged processes (CAP_IPC_LOCK).
int64_t page_lock_limit() noexcept;

}  // namespace artifex_devices
