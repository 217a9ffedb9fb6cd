// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <memory>
#include <thread>
#include <vector>

#include "artifex_devices/base/mutex.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/cpu/free_blocks.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARTIFEX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARTIFEX_ASAN 1
#endif
#endif
#ifdef ARTIFEX_ASAN
#include <sanitizer/asan_interface.h>
#endif

// Private to device/arena*.cpp.
namespace artifex_devices {

inline constexpr int64_t kAlignment = 64;
inline constexpr int64_t kMappedFrom = int64_t{1} << 20;  // blocks of at least this size are mapped separately
inline constexpr int64_t kChunkBytes = int64_t{2} << 20;
inline constexpr int kSizeClasses = 52;
inline constexpr int64_t kPage = 4096;
inline constexpr int kMostTries = 32;  // attempts to get memory: other threads may take what was released

/// Classes are the multiples of 64 up to 512, then four for each doubling up to 1 MiB: at most a fifth is unused.
/// Example: 513 bytes are in class 8, of 640 bytes.
constexpr int class_of(int64_t bytes) noexcept {
  if (bytes <= 512) return bytes <= kAlignment ? 0 : static_cast<int>((bytes - 1) / kAlignment);
  const uint64_t last = static_cast<uint64_t>(bytes) - 1;
  const int shift = static_cast<int>(std::bit_width(last)) - 1;
  return 8 + (shift - 9) * 4 + static_cast<int>((last >> (shift - 2)) & 3);
}
constexpr int64_t class_bytes(int size_class) noexcept {
  if (size_class < 8) return (size_class + 1) * kAlignment;
  return static_cast<int64_t>(5 + (size_class - 8) % 4) << (7 + (size_class - 8) / 4);
}
static_assert(class_of(0) == 0 && class_of(64) == 0 && class_of(65) == 1 && class_of(512) == 7 && class_of(513) == 8);
static_assert(class_bytes(8) == 640 && class_bytes(kSizeClasses - 1) == kMappedFrom);
static_assert(class_of(kMappedFrom - 1) == kSizeClasses - 1);

/// A lock held for a few instructions, with half the atomic operations of std::mutex. Waiting threads yield soon.
class ShortLock {
 public:
  void lock() noexcept {
    for (int tries = 0; held_.exchange(true, std::memory_order_acquire); ++tries) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++tries > kSpins) std::this_thread::yield();
      }
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpins = 64;
  std::atomic<bool> held_{false};
};

/// The pages of a chunk that are locked in RAM, and the number of blocks in use on each.
struct PageLocks {
  static constexpr size_t kPages = kChunkBytes / kPage;
  std::bitset<kPages> locked;  // written by the thread that is locking or unlocking
  std::array<uint16_t, kPages> users{};
  bool is_busy = false;  // a thread is locking or unlocking pages
};

/// 2 MiB from which small blocks of any class are allocated, front to back.
struct ArenaChunk {
  std::byte* data = nullptr;
  int64_t cut = 0;                   // bytes from the front that are divided into blocks
  int64_t in_use = 0;                // blocks with users
  std::unique_ptr<PageLocks> locks;  // of a pinned arena
  ArenaChunk* next = nullptr;
};

class ArenaReserve;

/// The counters and free blocks of one arena, all guarded by `mutex`; the atomics are also written under it. No system
/// call is made under it, except during a fork.
struct Arena::State {
  explicit State(Arena* owner);
  ~State();

  struct MappedBlock;  // the header of a block that is mapped separately

  Arena* const arena;
  const bool pinned;
  mutable NamedLock<ShortLock, "arena"> mutex;
  std::array<Block*, kSizeClasses> free{};  // last in, first out
  Block* spare_headers = nullptr;
  int64_t num_spare_headers = 0;
  ArenaChunk* chunks = nullptr;  // newest first
  int64_t num_chunks = 0;
  ArenaChunk* cutting = nullptr;
  int64_t empty_chunks = 0;  // without a block in use
  FreeBlocks free_mapped;
  std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> cached{0};  // of small blocks
  int64_t peak_in_use = 0;
  int64_t num_allocs = 0;
  int64_t cache_hits = 0;
  std::atomic<int64_t> mapped_in_use{0};  // of mapped blocks, part of in_use
  std::atomic<int64_t> mapped_cached{0};  // of free_mapped
  std::atomic<int64_t> locked{0};         // bytes of pages
  std::atomic<int64_t> locked_in_use{0};  // of blocks

  // Preallocated pages (arena_reserve.cpp).
  Mutex<"reserves of an arena"> reserves_mutex;
  std::vector<std::unique_ptr<ArenaReserve>> reserves;
  std::atomic<bool> has_reserves{false};
  std::atomic<int64_t> reserved_bytes{0};
  std::atomic<int64_t> reserved_free{0};

  /// Returns null if the system has no memory.
  Block* take(int64_t bytes) {
    return bytes < kMappedFrom && arena->is_caching() ? take_small(bytes) : take_mapped(bytes);
  }
  /// After a failure, drops cached blocks, waits for threads that are unmapping pages, and tries again. Throws
  /// OutOfMemory.
  Block* take_again(int64_t bytes);

  void give_small(Block* block) noexcept;
  /// Unmaps chunks without a block in use (the current one only on request); returns the bytes of their free blocks.
  int64_t trim_chunks(bool cutting_too) noexcept;

  /// Blocks of 1 MiB and more.
  void give_mapped(Block* block) noexcept;
  /// Unmaps the least recently freed ones of all arenas until at most `bound` bytes are cached, including small blocks;
  /// returns the unmapped bytes.
  static int64_t evict(int64_t bound, bool pinned_only = false) noexcept;
  /// Drops cached blocks if the process would exceed `usable` bytes with `bytes` more, and dropping can help. Returns
  /// the bytes dropped.
  static int64_t drop_cached_for(int64_t bytes, int64_t usable) noexcept;

  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;

  /// Locks the pages of a block in use, or records the failure.
  void lock_pages_of(Block* block) noexcept;
  void release_pages(Block* block) noexcept;      // of a block that is no longer in use
  void forget_lock(const Block* block) noexcept;  // before its own pages are unmapped
  void forget_lock_of_chunk(const ArenaChunk& chunk) noexcept;
  void forget_locks_in_child() noexcept;

  /// Returns pages for this arena, from the preallocated pages if there are enough; null if the system has no memory.
  std::byte* map(int64_t bytes, bool huge) noexcept;
  void unmap(std::byte* data, int64_t bytes) noexcept;
  std::byte* cut_reserve(int64_t bytes) noexcept;  // null if there is none
  bool is_in_reserve(const std::byte* data) noexcept;
  void retire_reserve(const ArenaReserve* reserve) noexcept;

  static const std::vector<Arena*>& arenas();
  static const std::vector<Arena*>* arenas_if_made() noexcept;
  static void lock_making() noexcept;
  static void unlock_making() noexcept;

 private:
  Block* take_small(int64_t bytes);
  Block* take_mapped(int64_t bytes);
  void count_taken_locked(int64_t capacity, bool hit) noexcept;

  Block* cut_small(int size_class, int64_t bytes) noexcept;
  Block* pop_small_locked(int size_class) noexcept;
  void use_small_locked(Block* block, int64_t bytes, bool hit) noexcept;
  Block* cut_locked(int size_class, ArenaChunk*& fresh) noexcept;
  Block* cut_block_locked(int size_class) noexcept;
  void cut_rest_locked(int largest_class) noexcept;
  void add_headers_locked(Block* slab) noexcept;
  ArenaChunk* new_chunk(bool huge) noexcept;
  void drop_chunks(ArenaChunk* first) noexcept;

  MappedBlock* take_free(int64_t wanted) noexcept;
  MappedBlock* map_block(int64_t wanted) noexcept;
  void use_mapped_locked(MappedBlock& block, bool hit) noexcept;
  void remove_free_locked(MappedBlock& block) noexcept;
  static void unmap_list(MappedBlock* first) noexcept;
  template <class Work>
  static void for_each_free(Work work) noexcept;  // `work` may remove the block
  static void lock_all() noexcept;
  static void unlock_all() noexcept;

  int try_lock(Block* block) noexcept;  // both return 0 or the error number
  int lock_small(Block* block) noexcept;
  ArenaChunk* begin_unlocking(std::bitset<PageLocks::kPages>& unused) noexcept;
  void count_users_locked(const Block* block, int by) noexcept;
  int64_t unlock_unused_pages() noexcept;
  bool unmap_reserve(std::byte* data, int64_t bytes) noexcept;
  /// Removes a retired reserve without a piece in use from the list; returns null if it is in use.
  std::unique_ptr<ArenaReserve> take_unused_locked(std::vector<std::unique_ptr<ArenaReserve>>::iterator at) noexcept;
};

struct Arena::State::MappedBlock : Block, FreeBlock {
  MappedBlock* next_dropped = nullptr;
  bool is_in_child = true;  // a child that is being forked inherits its pages
};

/// All arenas, created at the first call and never destroyed.
inline const std::vector<Arena*>& all_arenas() { return Arena::State::arenas(); }

/// Properties of requested pages.
struct PageAdvice {
  int node = -1;        // bound to this node if there are several; -1: not bound; kAllNodes: interleaved
  bool aligned = true;  // to 2 MiB
  bool huge = true;     // advised to be huge pages, from 2 MiB on
};
/// Maps pages from the system; returns null on failure.
std::byte* map_pages(int64_t bytes, const PageAdvice& advice) noexcept;
void unmap_pages(std::byte* data, int64_t bytes) noexcept;
/// Writes to every page so that it is resident; returns false if the system has no memory.
bool touch_pages(std::byte* data, int64_t bytes) noexcept;
/// Returns 0 or the error number.
int lock_pages(std::byte* data, int64_t bytes) noexcept;
void unlock_pages(std::byte* data, int64_t bytes) noexcept;
/// Sets whether a forked child inherits these pages; returns false if the system refuses.
bool keep_in_children(std::byte* data, int64_t bytes, bool keep) noexcept;
/// Lets the system reclaim the pages with their content when it is short of memory; until then they can be written
/// without a page fault. Returns false if unsupported.
bool offer_pages(std::byte* data, int64_t bytes) noexcept;

/// Memory that the process may use, read from the machine at the first use; tests set it.
extern std::atomic<int64_t> g_usable_bytes;
int64_t usable_bytes() noexcept;
/// The same, asked again; where that fails, usable_bytes().
int64_t usable_bytes_now() noexcept;

/// Bytes that all arenas have mapped with take_pages.
int64_t mapped_bytes() noexcept;
/// Corrects the count in a forked child: `missing` bytes were not inherited, and no thread is releasing any.
void correct_mapped_in_child(int64_t missing) noexcept;
/// Like map_pages within the usable memory; drops cached blocks that would not fit beside the new pages.
std::byte* take_pages(int64_t bytes, const PageAdvice& advice) noexcept;
void return_pages(std::byte* data, int64_t bytes) noexcept;

/// Created by a thread before it removes pages that it will unmap from their list, so that others can wait for them.
class Releasing {
 public:
  Releasing() = default;
  Releasing(const Releasing&) = delete;
  Releasing& operator=(const Releasing&) = delete;
  ~Releasing();
  void begin() noexcept;

 private:
  bool begun_ = false;
};
/// Number of finished releases.
int ended_releases() noexcept;
/// Waits for a running release. Returns false if there is none, and none has finished since ended_releases() was
/// `seen`.
bool wait_for_release(int seen) noexcept;

/// With AddressSanitizer, makes every access an error (or valid again); otherwise does nothing.
#ifdef ARTIFEX_ASAN
inline void poison(const void* data, int64_t bytes) noexcept {
  ASAN_POISON_MEMORY_REGION(data, static_cast<size_t>(bytes));
}
inline void unpoison(const void* data, int64_t bytes) noexcept {
  ASAN_UNPOISON_MEMORY_REGION(data, static_cast<size_t>(bytes));
}
#else
inline void poison(const void*, int64_t) noexcept {}
inline void unpoison(const void*, int64_t) noexcept {}
#endif

/// `config().cache_bytes` with its default resolved.
int64_t cache_bound() noexcept;
/// Upper bound of the bytes of cached blocks that the system cannot reclaim (offer_pages).
int64_t firm_cache_bound() noexcept;

}  // namespace artifex_devices
