// SPDX-License-Identifier: Apache-2.0
// Arenas around a fork. The child inherits the blocks in use and the chunks, but not the free blocks of 1 MiB and more.
#include "artifex_devices/device/cpu/arena_state.h"

namespace artifex_devices {
void Arena::State::lock_all() noexcept {
  lock_making();
  if (const auto* all = arenas_if_made()) {
    for (const Arena* each : *all) each->state_->mutex.lock();
    for (const Arena* each : *all) each->state_->reserves_mutex.lock();
  }
}

void Arena::State::unlock_all() noexcept {
  if (const auto* all = arenas_if_made()) {
    for (const Arena* each : *all) {
      each->state_->reserves_mutex.unlock();
      each->state_->mutex.unlock();
    }
  }
  unlock_making();
}

template <class Work>
void Arena::State::for_each_free(Work work) noexcept {
  const auto* all = arenas_if_made();
  if (!all) return;
  for (const Arena* each : *all) {
    for (FreeBlock* block = each->state_->free_mapped.oldest(); block;) {
      FreeBlock& current = *block;
      block = block->newer;
      work(*each->state_, static_cast<MappedBlock&>(current));
    }
  }
}

void Arena::State::before_fork() noexcept {
  lock_all();
  for_each_free(
      [](State&, MappedBlock& block) { block.is_in_child = !keep_in_children(block.data_, block.capacity_, false); });
}

void Arena::State::after_fork_in_parent() noexcept {
  MappedBlock* dropped = nullptr;
  for_each_free([&](State& state, MappedBlock& block) {
    if (block.is_in_child || keep_in_children(block.data_, block.capacity_, true)) return;
    // Otherwise later children would not inherit it when it is in use.
    state.remove_free_locked(block);
    block.next_dropped = dropped;
    dropped = &block;
  });
  unlock_all();
  unmap_list(dropped);
}

void Arena::State::after_fork_in_child() noexcept {
  int64_t missing = 0;
  for_each_free([&](State& state, MappedBlock& block) {
    state.remove_free_locked(block);
    missing += block.capacity_;
    if (block.is_in_child) {
      unmap_pages(block.data_, block.capacity_);
    } else {
      unpoison(block.data_, block.capacity_);  // other memory may be mapped there later
    }
    delete &block;
  });
  correct_mapped_in_child(missing);
  if (const auto* all = arenas_if_made()) {
    for (const Arena* each : *all) each->state_->forget_locks_in_child();
  }
  unlock_all();
}

}  // namespace artifex_devices
