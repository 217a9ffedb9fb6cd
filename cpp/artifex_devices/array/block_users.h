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
  BlockUsers(const Sharding& sharding, const Charge& charge, const std::vector<const Block*>& block_of);

  /// Call once for each position, when its last handle is gone. Returns the first buffer of a group that has no users
  /// any more; -1 where there is none.
  int64_t end(int64_t position) noexcept;
  int64_t next_in_group(int64_t buffer) const noexcept { return at(buffer).next; }  // -1 at the end
  bool has_ended() const noexcept { return groups_left_.load(std::memory_order_acquire) == 0; }

 private:
  struct Buffer {
    std::atomic<int64_t> positions_left{0};  // with handles
    int64_t group = 0;                       // its first buffer
    int64_t next = -1;                       // in the group
    std::atomic<int64_t> buffers_left{0};    // of a first buffer: those of its group with handles
  };
  Buffer& at(int64_t buffer) noexcept { return buffers_[static_cast<size_t>(buffer)]; }
  const Buffer& at(int64_t buffer) const noexcept { return buffers_[static_cast<size_t>(buffer)]; }
  void reserve(int64_t buffer, int sign) const noexcept;

  const Sharding& sharding_;
  const ShardBytes& bytes_;
  std::vector<Buffer> buffers_;
  std::atomic<int64_t> groups_left_{0};
};

}  // namespace artifex_devices
