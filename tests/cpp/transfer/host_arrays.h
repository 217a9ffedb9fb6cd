// SPDX-License-Identifier: Apache-2.0
// Host arrays of any strides with known bytes, and random shardings, for the tests of transfers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "../array/worlds.h"
#include "../base/byte_array.h"
#include "artifex_devices/array/array.h"
#include "artifex_devices/array/host_view.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/transfer_recording.h"

namespace artifex_devices::test {

using Random = std::mt19937_64;

inline int64_t pick(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
}

/// Calls visit(index) for all indices of `shape`, row-major.
template <class Visit>
void for_each_index(const Dims& shape, const Visit& visit) {
  for (const int64_t size : shape) {
    if (size == 0) return;
  }
  Dims index(shape.size(), 0);
  while (true) {
    visit(index);
    int64_t d = shape.size() - 1;
    for (; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
    if (d < 0) return;
  }
}

inline const std::byte* element(const HostView& view, const Dims& index) {
  const auto* at = static_cast<const std::byte*>(view.data);
  for (int64_t d = 0; d < index.size(); ++d) at += index[d] * view.byte_strides[d];
  return at;
}

/// The elements in row-major order.
inline ByteArray values(const HostView& view) {
  int64_t run = itemsize(view.dtype);  // bytes that lie together, of the last dimensions
  Dims outer = view.shape;
  while (!outer.empty() && view.byte_strides[outer.size() - 1] == run) {
    run *= outer.back();
    outer.resize(outer.size() - 1, 0);
  }
  ByteArray bytes;
  if (run == 0) return bytes;  // of an array that may have no memory
  for_each_index(outer, [&](const Dims& index) {
    const std::byte* at = element(view, index);
    bytes.insert(bytes.end(), at, at + run);
  });
  return bytes;
}

/// A dense row-major array of random bytes.
inline HostView dense(Random& random, const Dims& shape, DType dtype) {
  int64_t bytes = itemsize(dtype);
  for (const int64_t size : shape) bytes *= size;
  auto memory = std::make_shared<ByteArray>(random_bytes(random, bytes));
  HostView view;
  view.data = memory->data();
  view.dtype = dtype;
  view.shape = shape;
  view.byte_strides = row_major_strides(shape, itemsize(dtype));
  view.writable = true;
  view.owner = std::move(memory);
  return view;
}

/// Random bytes behind random strides: permuted, with gaps, negative, zero (unless `writable`), unaligned.
inline HostView strided(Random& random, const Dims& shape, DType dtype, bool writable = false) {
  const int64_t rank = shape.size();
  std::vector<int64_t> order(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) order[static_cast<size_t>(d)] = d;
  std::shuffle(order.begin(), order.end(), random);
  HostView view;
  view.dtype = dtype;
  view.shape = shape;
  view.byte_strides = Dims(rank, 0);
  view.writable = writable;
  int64_t extent = itemsize(dtype);
  int64_t first = pick(random, 0, 3);  // unaligned
  for (const int64_t d : order) {
    if (!writable && pick(random, 0, 5) == 0) continue;  // broadcast
    const int64_t stride = extent + pick(random, 0, 1) * pick(random, 0, 9);
    const int64_t span = stride * std::max<int64_t>(shape[d] - 1, 0);
    const bool backwards = pick(random, 0, 2) == 0;
    view.byte_strides[d] = backwards ? -stride : stride;
    if (backwards) first += span;
    extent += span;
  }
  auto memory = std::make_shared<ByteArray>(random_bytes(random, first + extent));
  view.data = memory->data() + first;
  view.owner = std::move(memory);
  return view;
}

inline DType random_dtype(Random& random) { return static_cast<DType>(pick(random, 0, kDTypeCount - 1)); }

struct Layout {
  ShardingRef sharding;
  std::string text;
};

/// A random mesh over some of the devices and a random spec for arrays of `rank`; with `shape`, one that divides it.
inline Layout random_layout(Random& random, const ClientRef& client, const Dims& shape, bool uneven) {
  if (pick(random, 0, 7) == 0) {
    const ShardingRef single =
        SingleDeviceSharding::make(client->device(DeviceId(pick(random, 0, client->device_count() - 1))));
    return {single, single->to_string()};
  }
  while (true) {
    Dims sizes;
    int64_t room = client->device_count();
    for (int64_t axes = pick(random, 1, 3); axes > 0; --axes) {
      sizes.push_back(pick(random, 1, std::min<int64_t>(room, 4)));
      room /= sizes.back();
    }
    std::vector<Device*> devices = devices_of(client);
    std::shuffle(devices.begin(), devices.end(), random);
    std::vector<AxisName> names;
    std::vector<std::string> entries(static_cast<size_t>(shape.size()));
    for (int64_t i = 0; i < sizes.size(); ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      names.emplace_back(name);
      const int64_t d = pick(random, -1, shape.size() - 1);
      if (d >= 0) entries[static_cast<size_t>(d)] += name;
    }
    const std::vector<std::string_view> views(entries.begin(), entries.end());
    const MeshRef mesh = make_mesh(sizes, names, {}, devices, "test");
    const ShardingRef sharding =
        NamedSharding::make(mesh, spec_of(views), MemoryKind::kDevice, uneven ? Uneven::kLastShort : Uneven::kError);
    bool divides = true;
    for (int64_t d = 0; d < shape.size(); ++d) divides = divides && shape[d] % sharding->grid().parts(d) == 0;
    if (divides || uneven) return {sharding, sharding->to_string()};
  }
}

inline Dims random_shape(Random& random) {
  Dims shape;
  for (int64_t rank = pick(random, 0, 4); rank > 0; --rank) {
    shape.push_back(pick(random, 0, 9) == 0 ? pick(random, 0, 5) : 12 / pick(random, 1, 4));
  }
  return shape;
}

/// The first `bytes` of a buffer, read from its memory.
inline ByteArray bytes_of(const BufferRef& buffer, int64_t bytes, const Client& client) {
  ByteArray read(static_cast<size_t>(bytes));
  CopyBatch batch;
  batch.add(StridedCopy(read.data(), Dims{1}, buffer.device_data(), Dims{1}, Dims{bytes}, 1), kAnyLane);
  client.executor().run(batch);
  return read;
}

/// The bytes of all transfers.
inline int64_t bytes_of(const TransferRecording& recording) {
  int64_t bytes = 0;
  for (const auto& [route, count] : recording.routes()) bytes += count.bytes;
  return bytes;
}

/// The part of the array at `position`.
inline IndexDomain box_at(const Array& array, Position position) {
  const ShardDomains domains = array.sharding()->domains(array.shape(), "test");
  return domains.domain(position);
}

/// What the shard at `position` holds, read from its memory.
inline ByteArray shard_values(const ArrayRef& array, Position position) {
  const BufferRef buffer = array->storage()->buffer(array->buffer_at(position));
  const int64_t bytes = box_at(*array, position).volume() * itemsize(array->dtype());
  return bytes_of(buffer, bytes, *array->sharding()->devices()->client());
}

/// The shard at this position has the part of `expected` that its domain says.
inline void expect_shard(const ArrayRef& array, Position position, const HostView& expected) {
  const IndexDomain domain = box_at(*array, position);
  HostView part = expected;
  part.shape = domain.shape;
  if (auto* data = static_cast<std::byte*>(expected.data); data != nullptr) {
    for (int64_t d = 0; d < part.shape.size(); ++d) data += domain.origin[d] * expected.byte_strides[d];
    part.data = data;
  }
  ASSERT_EQ(shard_values(array, position), values(part)) << "position " << position.number();
}

inline void expect_shards(const ArrayRef& array, const HostView& expected) {
  for (int64_t p = 0; p < array->sharding()->num_devices(); ++p) {
    ASSERT_NO_FATAL_FAILURE(expect_shard(array, Position(p), expected));
  }
}

}  // namespace artifex_devices::test
