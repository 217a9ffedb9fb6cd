// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "artifex_devices/array/charge.h"

namespace artifex_devices {

/// Which blocks of an array that was split into shards still have users. Buffers of one block form a group: the block
/// can be released once no position of the group has a handle. Until then, buffers whose positions have all ended count
/// as reserved by their devices. Thread-safe without locks.
class BlockUsers {
 public:
  /// `block_of`: the block of each buffer. `sharding` and `charge` outlive it.
  BlockUsers(const Sharding& sharding, const Charge& charge, const IdVector<BufferId, const Block*>& block_of);

  /// Call once for each position, when its last handle is gone. Returns the first buffer of a group that has no users
  /// any more; none where there is no such group.
  BufferId end(Position position) noexcept;
  BufferId next_in_group(BufferId buffer) const noexcept { return at(buffer).next; }  // none at the end
  bool has_ended() const noexcept { return groups_left_.load(std::memory_order_acquire) == 0; }

 private:
  struct Buffer {
    std::atomic<int64_t> positions_left{0};  // with handles
    BufferId group;                          // its first buffer
    BufferId next;                           // in the group
    std::atomic<int64_t> buffers_left{0};    // for a first buffer: number of buffers of its group with handles
  };
  Buffer& at(BufferId buffer) noexcept { return buffers_[buffer.number()]; }
  const Buffer& at(BufferId buffer) const noexcept { return buffers_[buffer.number()]; }
  void reserve(BufferId buffer, int sign) const noexcept;

  const Sharding& sharding_;
  const ShardBytes& bytes_;
  std::vector<Buffer> buffers_;  // not an IdVector: atomics are not copied
  std::atomic<int64_t> groups_left_{0};
};

}  // namespace artifex_devices
