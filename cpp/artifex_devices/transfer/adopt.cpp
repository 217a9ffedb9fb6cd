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
  const auto count = static_cast<size_t>(shards.size());
  if (parts.size() != count) {
    throw_error("{}: {} parts for a sharding with {} distinct buffers; expected one part for each buffer", operation,
                parts.size(), count);
  }
  std::vector<BufferRef> memory(count);
  std::vector<bool> is_copied(count);
  for (const Shard& shard : shards) {
    const auto b = static_cast<size_t>(shard.buffer);
    const Dims& expected = shard.box.shape;
    const HostView& view = parts[b].view;
    if (view.shape != expected || view.dtype != dtype) {
      throw_error("{}: part {} does not fit; expected {}{}, got {}{}", operation, b, name(dtype), to_string(expected),
                  name(view.dtype), to_string(view.shape));
    }
    is_copied[b] = !parts[b].memory.block;
    memory[b] = std::move(parts[b].memory);
  }
  auto storage = Storage::adopt(sharding, shards, dtype, std::move(memory), operation);
  CopyBatch batch;
  for (size_t b = 0; b < count; ++b) {
    const HostView& view = parts[b].view;
    if (!is_copied[b] || checked_product(view.shape, operation) == 0) continue;
    batch.add(StridedCopy(storage->device_data(static_cast<int64_t>(b)), row_major_strides(view.shape, itemsize(dtype)),
                          static_cast<const std::byte*>(view.data), view.byte_strides, view.shape, itemsize(dtype)),
              -1);
  }
  sharding->devices()->client()->executor().run(batch);
  return Array::make(shape, dtype, sharding, std::move(storage), nullptr, true);
}

}  // namespace artifex_devices
