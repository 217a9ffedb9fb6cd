// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/reinterpret.h"

#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/reshard.h"

namespace artifex_devices {

ArrayRef reinterpret(const ArrayRef& source, const Dims& shape, const ShardingRef& sharding,
                     std::string_view operation) {
  source->check_alive(operation);
  const ArrayRef in_order = row_major(source);
  const Array& array = *in_order;
  const Shards shards = sharding->shards(shape, operation);
  const ShardDomains old_domains = array.sharding()->domains(array.shape(), operation);
  if (sharding->devices()->client() != array.sharding()->devices()->client() ||
      sharding->num_devices() != array.sharding()->num_devices()) {
    throw_error("{}: a shape of the same memory needs the same devices; expected {} devices, got {}", operation,
                array.sharding()->num_devices(), sharding->num_devices());
  }
  BufferRefs buffers;
  buffers.reserve(shards.size());
  for (const Shard& shard : shards) {
    const int64_t expected = old_domains.domain(shard.position).volume();
    const int64_t received = shard.box.volume();
    if (expected != received) {
      throw_error(
          "{}: the shard at position {} has {} elements in shape {} and {} in shape {}; expected the same number",
          operation, shard.position.number(), expected, to_string(array.shape()), received, to_string(shape));
    }
    const BufferId number = array.buffer_at(shard.position);
    if (number.is_none()) {
      throw_error<NotAddressable>(
          "{}: the shard at position {} is in another process; expected the same devices in one order, got {} and {}; "
          "move it by device_put",
          operation, shard.position.number(), array.sharding()->to_string(), sharding->to_string());
    }
    buffers.push_back(array.storage()->buffer(number));
  }
  auto storage = Storage::adopt(sharding, shards, array.dtype(), std::move(buffers), operation);
  return Array::make(shape, array.dtype(), sharding, std::move(storage), array.ready_event(), array.committed());
}

}  // namespace artifex_devices
