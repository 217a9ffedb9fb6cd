// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "artifex_devices/array/storage.h"

namespace artifex_devices {

/// The handles on each position once an array has shards. Created with the first shard; until then one handle counts
/// for all positions. Buffers of one block form a group: the block can be freed when the group has no handle.
struct Storage::Shares {
  Shares(int64_t positions, int64_t buffers)
      : handles(new std::atomic<int64_t>[static_cast<size_t>(positions)]),
        positions_left(new std::atomic<int64_t>[static_cast<size_t>(buffers)]),
        buffers_left(new std::atomic<int64_t>[static_cast<size_t>(buffers)]),
        group(new int64_t[static_cast<size_t>(buffers)]),
        next_in_group(new int64_t[static_cast<size_t>(buffers)]) {}

  std::unique_ptr<std::atomic<int64_t>[]> handles;         // by position; never increases again from 0
  std::unique_ptr<std::atomic<int64_t>[]> positions_left;  // by buffer: number of its positions with handles
  std::unique_ptr<std::atomic<int64_t>[]> buffers_left;    // by group: number of its buffers with handles
  std::unique_ptr<int64_t[]> group;                        // by buffer: the first buffer of its block
  std::unique_ptr<int64_t[]> next_in_group;                // by buffer, -1 at the end
  std::atomic<int64_t> groups_left{0};

  bool is_alone(int64_t buffer) const noexcept {
    const auto b = static_cast<size_t>(buffer);
    return group[b] == buffer && next_in_group[b] < 0;
  }
};

}  // namespace artifex_devices
