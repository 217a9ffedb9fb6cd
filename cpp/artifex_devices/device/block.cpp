// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/block.h"

#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/memory_space.h"

namespace artifex_devices {

bool Block::is_host_readable() const noexcept { return space_ == nullptr || space_->is_host_readable(); }

uint64_t Block::address() const noexcept {
  return reinterpret_cast<uint64_t>(data_) + (space_ ? static_cast<uint64_t>(space_->address_offset()) : 0);
}

std::byte* Block::host_data() const {
  if (is_host_readable()) return data_;
  throw_error<Unavailable>(
      "host_data: the memory at {:#x} belongs to a GPU, which the host cannot read; expected host memory; copy it by "
      "device_get first",
      address());
}

void Block::mark_as_exported() {
  if (is_exported_.exchange(true) || space_ == nullptr) return;
  try {
    space_->add_exported(*this);
  } catch (...) {
    is_exported_.store(false);
    throw;
  }
}

bool can_hold(const MemorySpace& space, const Block& block) noexcept {
  if (block.space() == &space) return true;
  if (!space.is_host_readable() || !block.is_host_readable()) return false;
  return block.is_foreign() ? space.kind() != MemoryKind::kPinnedHost : block.space()->kind() == space.kind();
}

/// Creates and deletes headers of blocks that no space owns.
class BlockOwner {
 public:
  static BlockRef foreign(void* data, int64_t bytes, std::function<void()> release, MemorySpace* space) {
    Block* block = new Block();
    block->data_ = static_cast<std::byte*>(data);
    block->bytes_ = block->capacity_ = bytes;
    block->space_ = space;
    block->release_ = std::move(release);
    return BlockRef(block);
  }
  static void destroy(Block* block) noexcept { delete block; }
};

BlockRef MemorySpace::unplaced_block(int64_t bytes, int64_t capacity) {
  Block* block = new Block();
  block->bytes_ = bytes;
  block->capacity_ = capacity;
  return BlockRef(block);
}

void MemorySpace::place(const BlockRef& block, std::byte* data) noexcept {
  block->data_ = data;
  block->space_ = this;
}

MemorySpace::Released MemorySpace::take_apart(Block* block) noexcept {
  const Released released{block->data_, block->capacity_, block->to_system_.load(std::memory_order_relaxed),
                          block->is_exported_.load(std::memory_order_relaxed)};
  delete block;
  return released;
}

BlockRef foreign_block(void* data, int64_t bytes, std::function<void()> release) {
  return BlockOwner::foreign(data, bytes, std::move(release), nullptr);
}

BlockRef MemorySpace::foreign_block(void* data, int64_t bytes, std::function<void()> release) {
  return BlockOwner::foreign(data, bytes, std::move(release), this);
}

void BlockRef::dispose(Block* block) noexcept {
  no_lock_held("the end of a block of memory");  // its owner may be foreign code
  MemorySpace* space = block->space();
  if (!block->is_foreign() && space != nullptr) {
    space->release(block);
    return;
  }
  try {
    if (space != nullptr && block->is_exported_.load(std::memory_order_relaxed)) {
      space->remove_exported(*block);
      space->wait_for_device();
    }
    if (block->release_) block->release_();
  } catch (...) {  // an error of the owner cannot be reported here
  }
  BlockOwner::destroy(block);
}

}  // namespace artifex_devices
