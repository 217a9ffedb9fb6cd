// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/array_memory.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace artifex_devices {

ArrayMemory memory_of(const Array& array) {
  array.check_alive("describe");
  const Storage& storage = *array.storage();
  ArrayMemory memory;
  memory.is_shard = array.is_shard();
  memory.devices = array.sharding()->devices()->addressable_count();
  memory.logical_bytes = array.on_device_size_in_bytes();
  const BufferId first = memory.is_shard ? array.buffer_at(Position(0)) : BufferId(0);
  const BufferId end = memory.is_shard ? first + 1 : BufferId(storage.buffer_count());

  std::vector<BufferRef> held;
  std::unordered_set<const std::byte*> seen;
  std::unordered_map<const Block*, int64_t> references;  // of the storage and of `held`
  int64_t stride = 0;
  const bool is_slab = storage.slab(&stride) != nullptr;
  memory.device_bytes_min = first < end ? storage.buffer_bytes(first) : 0;  // none: all of it is in other processes
  for (BufferId number = first; number < end; ++number) {
    const int64_t bytes = storage.buffer_bytes(number);
    memory.device_bytes_min = std::min(memory.device_bytes_min, bytes);
    memory.device_bytes_max = std::max(memory.device_bytes_max, bytes);
    held.push_back(storage.buffer(number));
    references[&*held.back().block] += is_slab ? 1 : 2;
    if (bytes > 0 && !seen.insert(held.back().device_data()).second) continue;
    ++memory.buffers;
    memory.physical_bytes += bytes;
  }
  // Of a shard, the storage's references to the block that are not its own buffer's are the siblings'.
  memory.blocks = static_cast<int64_t>(references.size());
  for (auto& [block, ours] : references) {
    memory.foreign_blocks += block->is_foreign() ? 1 : 0;
    memory.locked_blocks += block->is_locked() ? 1 : 0;
    memory.other_users += std::max<int64_t>(block->use_count() - ours - (is_slab ? 1 : 0), 0);
  }
  if (is_slab && storage.buffer_count() > 1 && !memory.is_shard) memory.slab_stride = stride;
  return memory;
}

}  // namespace artifex_devices
