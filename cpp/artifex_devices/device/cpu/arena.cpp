// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/arena.h"

#include <algorithm>
#include <atomic>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cpu/arena_reserve.h"
#include "artifex_devices/device/cpu/arena_state.h"

namespace artifex_devices {
namespace {

constinit Mutex<"making of arenas"> g_making;  // the arenas; held during a fork
constinit std::atomic<const std::vector<Arena*>*> g_arenas{nullptr};

class ArenasAtFork final : AtFork {
 public:
  ArenasAtFork() : AtFork(1) {}

 private:
  void before() override { Arena::State::before_fork(); }
  void in_parent() override { Arena::State::after_fork_in_parent(); }
  void in_child() override { Arena::State::after_fork_in_child(); }
};
ArenasAtFork g_arenas_at_fork;

}  // namespace

Arena::Arena(int node, MemoryKind kind, bool caching, Reader reader)
    : MemorySpace(kind, reader == Reader::kHost, reader == Reader::kHost ? 0 : kUnmappedOffset),
      node_(node),
      caching_(caching),
      state_(std::make_unique<State>(this)) {}

Arena::~Arena() = default;

Arena::State::State(Arena* owner) : arena(owner), pinned(owner->kind() == MemoryKind::kPinnedHost) {}

const std::vector<Arena*>& Arena::State::arenas() {
  if (const auto* all = arenas_if_made()) return *all;
  const std::lock_guard lock(g_making);
  if (const auto* all = arenas_if_made()) return *all;
  const std::shared_ptr<const Machine> machine = Machine::live();
  std::vector<std::unique_ptr<Arena>> owned;
  const auto make_on_each_node = [&](MemoryKind kind, bool caching, Reader reader) {
    const auto make = [&](int node) {
      owned.push_back(std::unique_ptr<Arena>(new Arena(node, kind, caching, reader)));
    };
    for (const NumaNode& node : machine->numa_nodes()) make(node.logical_index);
    if (machine->numa_nodes().empty()) make(0);
  };
  // By caching, kind and node, then those of emulated GPUs, then the interleaved ones: find_on_node and interleaved
  // rely on this order.
  for (const bool caching : {true, false}) {
    for (const MemoryKind kind : kMemoryKinds) make_on_each_node(kind, caching, Reader::kHost);
    make_on_each_node(MemoryKind::kDevice, caching, Reader::kEmulatedGpu);
  }
  for (const bool caching : {true, false}) {
    owned.push_back(std::unique_ptr<Arena>(new Arena(kAllNodes, MemoryKind::kDevice, caching, Reader::kHost)));
  }
  auto* made = new std::vector<Arena*>(owned.size());
  for (size_t i = 0; i < owned.size(); ++i) (*made)[i] = owned[i].release();
  g_arenas.store(made, std::memory_order_release);
  return *made;
}

const std::vector<Arena*>* Arena::State::arenas_if_made() noexcept { return g_arenas.load(std::memory_order_acquire); }
void Arena::State::lock_making() noexcept { g_making.lock(); }
void Arena::State::unlock_making() noexcept { g_making.unlock(); }

/// `group`: the number of a memory kind, or kMemoryKinds.size() for emulated GPUs.
Arena& Arena::find_on_node(int logical_index, size_t group, bool caching) {
  constexpr size_t kGroups = kMemoryKinds.size() + 1;
  const std::vector<Arena*>& all = all_arenas();
  const size_t nodes = (all.size() - 2) / (2 * kGroups);
  const size_t first = ((caching ? 0 : kGroups) + group) * nodes;
  return *all[first + static_cast<size_t>(std::max(logical_index, 0)) % nodes];
}

Arena& Arena::of_node(int logical_index, MemoryKind kind, bool caching) {
  return find_on_node(logical_index, static_cast<size_t>(kind), caching);
}

Arena& Arena::of_emulated_gpus(int logical_index, bool caching) {
  return find_on_node(logical_index, kMemoryKinds.size(), caching);
}

Arena& Arena::interleaved(bool caching) {
  const std::vector<Arena*>& all = all_arenas();
  return *all[all.size() - (caching ? 2 : 1)];
}

BlockRef Arena::allocate(int64_t bytes) {
  if (bytes < 0) throw_error("allocate: bytes is {}; expected 0 or more", bytes);
  Block* block = state_->take(bytes);
  if (!block) block = state_->take_again(bytes);
  if (state_->pinned) state_->lock_pages_of(block);
  BlockRef taken;
  block->uses_.store(1, std::memory_order_relaxed);
  taken.block_ = block;
  return taken;
}

void Arena::release(Block* block) noexcept {
  if (state_->pinned) state_->release_pages(block);
  if (block->size_class_ >= 0) {
    state_->give_small(block);
  } else {
    state_->give_mapped(block);
  }
}

MemorySpaceStats Arena::stats() const {
  const std::lock_guard lock(state_->mutex);
  const int64_t mapped_cached = state_->mapped_cached.load(std::memory_order_relaxed);
  const int64_t in_use = state_->in_use.load(std::memory_order_relaxed);
  const int64_t not_locked = in_use - state_->locked_in_use.load(std::memory_order_relaxed);
  return {
      .bytes_in_use = in_use,
      .bytes_cached = state_->cached.load(std::memory_order_relaxed) + mapped_cached,
      .bytes_mapped = state_->num_chunks * kChunkBytes + state_->mapped_in_use.load(std::memory_order_relaxed) +
                      mapped_cached + state_->reserved_free.load(std::memory_order_relaxed),
      .peak_bytes_in_use = state_->peak_in_use,
      .num_allocs = state_->num_allocs,
      .cache_hits = state_->cache_hits,
      .bytes_locked = state_->locked.load(std::memory_order_relaxed),
      .bytes_not_locked = state_->pinned ? std::max<int64_t>(not_locked, 0) : 0,
      .bytes_preallocated = state_->reserved_bytes.load(std::memory_order_relaxed),
  };
}

int64_t Arena::trim_all() {
  int64_t bytes = State::evict(-1);
  for (Arena* arena : all_arenas()) bytes += arena->state_->trim_chunks(true);
  return bytes;
}

Block* Arena::State::take_again(int64_t bytes) {
  const int64_t usable = usable_bytes_now();
  const auto can_fit = [&] { return bytes <= usable - (mapped_bytes() - Arena::total_cached_bytes()); };
  for (int tries = 0; tries < kMostTries; ++tries) {
    const int seen = ended_releases();
    if (can_fit()) {
      if (Block* block = take(bytes)) return block;
      if (trim_all() > 0) continue;
    }
    if (!wait_for_release(seen)) break;
  }
  const MemorySpaceStats now = arena->stats();
  throw_error<OutOfMemory>(
      "RESOURCE_EXHAUSTED: allocate: no {}memory for {} bytes on NUMA node {}; {} bytes are in use there, {} are "
      "cached, and the process may use {} bytes in all; delete arrays or place smaller ones",
      arena->kind() == MemoryKind::kDevice ? "" : fmt::format("{} ", to_string(arena->kind())), bytes, arena->node(),
      now.bytes_in_use, now.bytes_cached, usable);
}

}  // namespace artifex_devices
