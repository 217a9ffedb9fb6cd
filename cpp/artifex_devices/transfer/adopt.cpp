// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/adopt.h"

#include <algorithm>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/executor.h"

namespace artifex_devices {

bool can_adopt(const HostView& view, const Block* block, const MemorySpace& space) noexcept {
  constexpr int64_t kMostAlignment = 16;  // of memory from malloc
  const auto alignment = static_cast<uintptr_t>(std::min(itemsize(view.dtype), kMostAlignment));
  if (!is_dense(view.shape, view.byte_strides, itemsize(view.dtype))) return false;
  if (reinterpret_cast<uintptr_t>(view.data) % alignment != 0) return false;
  if (block != nullptr) return can_hold(space, *block);
  return space.is_host_readable() && space.kind() != MemoryKind::kPinnedHost;  // memory of the caller is not locked
}

ArrayRef adopt(const Dims& shape, DType dtype, const ShardingRef& sharding, std::vector<AdoptedPart> parts,
               std::string_view operation) {
  const Shards shards = sharding->shards(shape, operation);
  if (std::ssize(parts) != shards.size()) {
    throw_error("{}: {} parts for a sharding with {} distinct buffers; expected one part for each buffer", operation,
                parts.size(), shards.size());
  }
  BufferRefs memory(shards.size());
  IdVector<BufferId, bool> is_copied(shards.size());
  for (const Shard& shard : shards) {
    const Dims& expected = shard.box.shape;
    AdoptedPart& part = parts[shard.buffer.number()];
    const HostView& view = part.view;
    if (view.shape != expected || view.dtype != dtype) {
      throw_error("{}: part {} does not fit; expected {}{}, got {}{}", operation, shard.buffer.number(), name(dtype),
                  to_string(expected), name(view.dtype), to_string(view.shape));
    }
    is_copied[shard.buffer] = !part.memory.block;
    memory[shard.buffer] = std::move(part.memory);
  }
  auto storage = Storage::adopt(sharding, shards, dtype, std::move(memory), operation);
  CopyBatch batch;
  for (const BufferId b : is_copied.ids()) {
    const HostView& view = parts[b.number()].view;
    if (!is_copied[b] || checked_product(view.shape, operation) == 0) continue;
    batch.add(StridedCopy(storage->device_data(b), row_major_strides(view.shape, itemsize(dtype)),
                          static_cast<const std::byte*>(view.data), view.byte_strides, view.shape, itemsize(dtype)),
              kAnyLane);
  }
  sharding->devices()->client()->executor().run(batch);
  return Array::make(shape, dtype, sharding, std::move(storage), nullptr, true);
}

}  // namespace artifex_devices
