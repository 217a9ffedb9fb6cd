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
#include "artifex_devices/device/arena.h"

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
inline constexpr int64_t kMappedFrom = int64_t{1} << 20;  // blocks of this size and more are mapped on their own
inline constexpr int64_t kChunkBytes = int64_t{2} << 20;
inline constexpr int kSizeClasses = 52;
inline constexpr int64_t kPage = 4096;

/// Classes are the multiples of 64 up to 512, then four a doubling up to 1 MiB: at most a fifth is lost.
/// Example: 513 bytes are of class 8, which has 640.
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

/// A lock for a few instructions: half the atomic operations of std::mutex. Waiters yield soon.
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

/// The pages of a chunk that are locked in RAM, and how many blocks in use lie on each.
struct PageLocks {
  static constexpr size_t kPages = kChunkBytes / kPage;
  std::bitset<kPages> locked;
  std::array<uint16_t, kPages> users{};
};

/// 2 MiB that small blocks of any class are cut from, front to back.
struct Chunk {
  std::byte* data = nullptr;
  int64_t cut = 0;                   // bytes from the front that are cut into blocks
  int64_t in_use = 0;                // blocks with users
  std::unique_ptr<PageLocks> locks;  // of a pinned arena
};

class Reserve;

/// The counters and the small blocks of one arena, all under `mutex`; the atomics are written under it too.
struct Arena::State {
  explicit State(Arena* owner);
  ~State();

  Arena* const arena;
  const bool pinned;
  mutable NamedLock<ShortLock, "arena"> mutex;
  std::array<Block*, kSizeClasses> free{};  // last in, first out
  Block* spare_headers = nullptr;
  std::vector<std::unique_ptr<Chunk>> chunks;
  Chunk* cutting = nullptr;
  int64_t empty_chunks = 0;  // without a block in use
  std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> cached{0};  // of small blocks
  int64_t peak_in_use = 0;
  int64_t num_allocs = 0;
  int64_t cache_hits = 0;
  std::atomic<int64_t> mapped_in_use{0};  // of mapped blocks, part of in_use
  std::atomic<int64_t> mapped_cached{0};  // written under the lock of mapped blocks
  std::atomic<int64_t> locked{0};         // bytes of pages
  std::atomic<int64_t> locked_in_use{0};  // of blocks

  // What was taken up front (arena_reserve.cpp). `mutex` may be held when this one is taken.
  Mutex<"reserves of an arena"> reserves_mutex;
  std::vector<std::unique_ptr<Reserve>> reserves;
  std::atomic<bool> has_reserves{false};
  std::atomic<int64_t> reserved_bytes{0};
  std::atomic<int64_t> reserved_free{0};

  /// Null when the system has no memory.
  Block* take_small(int64_t bytes);
  /// The second try, with nothing cached any more. Throws OutOfMemory.
  Block* take_after_trim(int64_t bytes);
  void give_small(Block* block) noexcept;
  /// Frees chunks without a block in use, the one being cut only when asked; returns the bytes of free blocks in them.
  int64_t trim_chunks_locked(bool cutting_too) noexcept;
  void count_taken_locked(int64_t capacity, bool hit) noexcept;

  /// Blocks of 1 MiB and more. Null when the system has no memory.
  Block* take_mapped(int64_t bytes);
  static void give_mapped(Block* block) noexcept;
  static int64_t trim_mapped(bool pinned_only = false) noexcept;
  static void before_fork() noexcept;
  static void after_fork(bool in_child) noexcept;

  /// Locks the pages of a block in use, or leaves it as it is and says so.
  void lock_pages_of(Block* block) noexcept;
  void let_go_of_pages(Block* block) noexcept;    // of a block that is no longer in use
  void forget_lock(const Block* block) noexcept;  // before its own pages go
  void forget_lock_of_chunk_locked(const Chunk& chunk) noexcept;
  void forget_locks_in_child() noexcept;

  /// Pages for this arena, from what was taken up front if there is enough; null when the system has no memory.
  std::byte* map(int64_t bytes, bool huge) noexcept;
  void unmap(std::byte* data, int64_t bytes) noexcept;
  std::byte* cut_reserve(int64_t bytes) noexcept;  // null: nothing there
  bool is_in_reserve(const std::byte* data) noexcept;
  void retire_reserve(const Reserve* reserve) noexcept;

  static const std::vector<Arena*>& arenas();
  static const std::vector<Arena*>* arenas_if_made() noexcept;
  static void lock_making() noexcept;
  static void unlock_making() noexcept;
  static int64_t total_in_use() noexcept;  // and what is taken up front
  /// Whether the process cannot have so much more, whatever the system promises.
  static bool exceeds_memory(int64_t bytes) noexcept;
  static int64_t total_small_cached() noexcept;

 private:
  int try_lock(Block* block) noexcept;  // these two: 0, or the error number
  int lock_small_locked(Block* block) noexcept;
  void count_users_locked(const Block* block, int by) noexcept;
  int64_t unlock_unused_pages() noexcept;
  bool unmap_reserve(std::byte* data, int64_t bytes) noexcept;
  Block* cut_locked(int size_class);
  Block* header_locked();
  bool add_chunk_locked();
  static void unlink_locked(Block* block) noexcept;
  static void unmap_list(Block* first) noexcept;
};

/// All arenas, made at the first call and never destroyed.
inline const std::vector<Arena*>& all_arenas() { return Arena::State::arenas(); }

/// Creates and deletes headers of blocks that are not small.
class BlockOwner {
 public:
  static Block* make() noexcept;
  static void destroy(Block* block) noexcept;
  static BlockRef foreign(void* data, int64_t bytes, std::function<void()> release);
};

/// How pages are wanted.
struct PageAdvice {
  int node = -1;        // bound to it where the machine has several; -1: not bound
  bool aligned = true;  // to 2 MiB
  bool huge = true;     // advised to be huge pages, from 2 MiB on
};
/// Pages from the system, or null.
std::byte* map_pages(int64_t bytes, const PageAdvice& advice) noexcept;
void unmap_pages(std::byte* data, int64_t bytes) noexcept;
/// Writes to every page, so that it is there; false when the system has no memory for it.
bool touch_pages(std::byte* data, int64_t bytes) noexcept;
/// 0, or the error number.
int lock_pages(std::byte* data, int64_t bytes) noexcept;
void unlock_pages(std::byte* data, int64_t bytes) noexcept;
/// Whether a forked child gets these pages; false where the system does not say yes.
bool keep_in_children(std::byte* data, int64_t bytes, bool keep) noexcept;

/// Under AddressSanitizer, makes every access an error (or fine again); else nothing.
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

/// `config().cache_bytes`, its default resolved.
int64_t cache_bound() noexcept;

}  // namespace artifex_devices
