// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/arena.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cpu/arena_blocks.h"
#include "artifex_devices/device/cpu/arenas.h"

namespace artifex_devices {

Arena::Arena(int node, MemoryKind kind, bool caching, Reader reader)
    : MemorySpace(kind, reader == Reader::kHost, reader == Reader::kHost ? 0 : kUnmappedOffset),
      node_(node),
      caching_(caching),
      blocks_(std::make_unique<ArenaBlocks>(*this)) {}

Arena::~Arena() = default;

const std::vector<Arena*>* Arena::make_all() {
  const std::shared_ptr<const Machine> machine = Machine::live();
  std::vector<std::unique_ptr<Arena>> owned;
  const auto make_on_each_node = [&](MemoryKind kind, bool caching, Reader reader) {
    const auto make = [&](int node) {
      owned.push_back(std::unique_ptr<Arena>(new Arena(node, kind, caching, reader)));
    };
    for (const NumaNode& node : machine->numa_nodes()) make(node.logical_index);
    if (machine->numa_nodes().empty()) make(0);
  };
  // By caching, kind and node; then arenas of emulated GPUs, then interleaved arenas. find_on_node and interleaved rely
  // on this order.
  for (const bool caching : {true, false}) {
    for (const MemoryKind kind : kMemoryKinds) make_on_each_node(kind, caching, Reader::kHost);
    make_on_each_node(MemoryKind::kDevice, caching, Reader::kEmulatedGpu);
  }
  for (const bool caching : {true, false}) {
    owned.push_back(std::unique_ptr<Arena>(new Arena(kAllNodes, MemoryKind::kDevice, caching, Reader::kHost)));
  }
  auto* made = new std::vector<Arena*>(owned.size());
  std::ranges::transform(owned, made->begin(), [](auto& arena) { return arena.release(); });
  return made;
}

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
  Block* block = blocks_->take(bytes);
  if (!block) block = take_again(bytes);
  if (blocks_->is_pinned()) blocks_->lock_pages(block);
  BlockRef taken;
  block->uses_.store(1, std::memory_order_relaxed);
  taken.block_ = block;
  return taken;
}

void Arena::release(Block* block) noexcept { blocks_->give(block); }

MemorySpaceStats Arena::stats() const { return blocks_->stats(); }

std::shared_ptr<void> Arena::preallocate(int64_t bytes, std::string_view operation) {
  return blocks_->pages().preallocate(bytes, operation);
}

Block* Arena::take_again(int64_t bytes) {
  const int64_t usable = usable_bytes_now();
  const auto can_fit = [&] { return bytes <= usable - (mapped_bytes() - total_cached_bytes()); };
  for (int tries = 0; tries < kMostTries; ++tries) {
    const int seen = ended_releases();
    if (can_fit()) {
      if (Block* block = blocks_->take(bytes)) return block;
      if (trim_all() > 0) continue;
    }
    if (!wait_for_release(seen)) break;
  }
  const MemorySpaceStats now = stats();
  throw_error<OutOfMemory>(
      "RESOURCE_EXHAUSTED: allocate: no {}memory for {} bytes on NUMA node {}; {} bytes are in use there, {} are "
      "cached, and the process may use {} bytes in all; delete arrays or place smaller ones",
      kind() == MemoryKind::kDevice ? "" : fmt::format("{} ", to_string(kind())), bytes, node_, now.bytes_in_use,
      now.bytes_cached, usable);
}

}  // namespace artifex_devices
