// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/device_put.h"

#include <cstring>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/recorded_transfer.h"
#include "artifex_devices/transfer/row_major_tiles.h"
#include "artifex_devices/transfer/tiling.h"

namespace artifex_devices {
namespace {

/// The bytes of the value. Throws if the strides do not match the shape, or if the bytes do not fit 63 bits.
int64_t bytes_of(const HostView& source, std::string_view operation) {
  if (source.byte_strides.size() != source.shape.size()) {
    throw_error("{}: source has {} strides for the {} dimensions of shape {}; expected one each", operation,
                source.byte_strides.size(), source.shape.size(), to_string(source.shape));
  }
  return checked_bytes(source.shape, source.dtype, operation);
}

/// Writes all buffers, at once or with `joint`; `total` is their bytes. Returns the bytes that copies write.
int64_t fill(const HostView& source, const Shards& shards, const Storage& storage, const Layout* layout, int64_t total,
             JointCopies* joint) {
  if (total == 0) return 0;
  const Sharding& sharding = *storage.sharding();
  const int64_t size = itemsize(source.dtype);
  std::byte* run = row_major_run(storage, shards);
  Executor& executor = sharding.devices()->client()->executor();
  CopyBatch* const later = joint ? joint->batch_of(executor) : nullptr;
  const bool is_inline = !later && executor.is_inline(total);
  if (run && !later && !layout && is_dense(source.shape, source.byte_strides, size) &&
      (is_inline || executor.is_inline(total, true))) {
    std::memcpy(run, source.data, total);
    return total;
  }
  CopyBatch own;
  CopyBatch& batch = later ? *later : own;
  int64_t written = 0;
  const auto take = [&](const StridedCopy& copy, BufferId buffer) {
    written += copy.bytes();
    if (is_inline) {
      copy.run();
    } else {
      batch.add(copy, sharding.device(buffer).lane());
    }
  };
  if (const auto tiles = Tiling::of(storage, shards, layout, size)) {
    const Tiling whole{static_cast<std::byte*>(source.data), source.byte_strides, {}, 0};
    take(tiling_copy(*tiles, whole, source.shape, size), BufferId(0));
  } else {
    if (!later) batch.reserve(storage.buffer_count());
    int64_t lane_bytes = total;
    if (!is_inline && !sharding.devices()->on_one_arena()) {
      std::vector<LaneId> lanes;
      for (const BufferId b : sharding.buffers().ids()) lanes.push_back(sharding.device(b).lane());
      lane_bytes = bytes_of_one_lane(total, std::move(lanes));
    }
    Dims strides = buffer_strides(layout, shards.shard_shape(), size);
    for (const Shard& shard : shards) {
      const IndexDomain& box = shard.box;
      if (!shards.is_even()) strides = buffer_strides(layout, box.shape, size);
      const std::byte* from = static_cast<const std::byte*>(source.data);
      for (int64_t d = 0; d < box.rank(); ++d) from += box.origin[d] * source.byte_strides[d];
      take(StridedCopy(storage.device_data(shard.buffer), strides, from, source.byte_strides, box.shape, size,
                       lane_bytes),
           shard.buffer);
    }
  }
  if (!later) executor.run(batch);
  return written;
}

int64_t physical_bytes(const Storage& storage) noexcept {
  if (storage.bytes().is_even()) return storage.buffer_count() * storage.bytes().tile();
  int64_t sum = 0;
  for (const BufferId b : IdRange<BufferId>(storage.buffer_count())) sum += storage.buffer_bytes(b);
  return sum;
}

}  // namespace

ArrayRef device_put(const HostView& source, const ShardingRef& sharding, bool committed, LayoutRef layout,
                    int64_t shareable_bytes, JointCopies* joint) {
  bytes_of(source, "device_put");
  const Shards shards = sharding->shards(source.shape, "device_put");
  auto storage = Storage::allocate(sharding, shards, source.dtype, "device_put");
  const int64_t bytes = physical_bytes(*storage);
  const int64_t begin_ns = recorded_begin_ns(Recorded::kTransfers);
  const int64_t written = fill(source, shards, *storage, layout.get(), bytes, joint);
  if (is_recorded(Recorded::kTransfers)) {
    record_put(*sharding, source.shape, source.dtype, {begin_ns, written}, shareable_bytes);
  }
  return Array::make(source.shape, source.dtype, sharding, std::move(storage), nullptr, committed, std::move(layout));
}

ArrayRef device_put_alias(const HostView& source, const ShardingRef& sharding, bool committed) {
  constexpr std::string_view kOperation = "device_put";
  const int64_t bytes = bytes_of(source, kOperation);
  const ShardDomains domains = sharding->domains(source.shape, kOperation);
  const bool dense = is_dense(source.shape, source.byte_strides, itemsize(source.dtype));
  const int64_t buffers = sharding->buffers().size();
  if (sharding->memory_kind() == MemoryKind::kPinnedHost) {
    throw_error(
        "{}: may_alias=True shares the source's memory, which is not locked, but sharding {} has memory kind "
        "pinned_host; expected device or unpinned_host; leave may_alias out for a copy",
        kOperation, sharding->to_string());
  }
  if (!sharding->devices()->client()->is_host_readable(sharding->memory_kind())) {
    throw_error(
        "{}: may_alias=True shares the source's memory on the host, but sharding {} is on GPUs with their own memory; "
        "expected CPU devices; leave may_alias out for a copy",
        kOperation, sharding->to_string());
  }
  if (!dense || buffers != 1 || !sharding->is_fully_replicated()) {
    std::string wrong;
    if (!dense) {
      wrong = fmt::format("source with strides {} for shape {} is not dense row-major", to_string(source.byte_strides),
                          to_string(source.shape));
    }
    if (buffers != 1) {
      wrong += fmt::format("{}sharding {} needs {} buffers; expected 1", dense ? "" : ", and ", sharding->to_string(),
                           buffers);
    } else if (!sharding->is_fully_replicated()) {
      wrong += fmt::format("{}sharding {} has only a part here; expected all of it", dense ? "" : ", and ",
                           sharding->to_string());
    }
    throw_error("{}: may_alias=True cannot share the source's memory: {}; leave may_alias out for a copy", kOperation,
                wrong);
  }
  BufferRefs memory;
  memory.push_back({foreign_block(source.data, bytes, [owner = source.owner] {}), 0});
  auto storage = Storage::adopt(sharding, domains, source.dtype, std::move(memory), kOperation);
  return Array::make(source.shape, source.dtype, sharding, std::move(storage), nullptr, committed);
}

}  // namespace artifex_devices
