// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/index_domain.h"
#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/device/copy_engine.h"

namespace artifex_devices {

/// A box of an array in memory, which the caller keeps alive: one distinct buffer of an Array, or an ndarray.
struct BoxMemory {
  IndexDomain box;
  std::byte* data = nullptr;  // of the box's first element
  Dims byte_strides;
  bool is_host_readable = true;
  const CopyEngine* engine = nullptr;  // what copies; null: the processor. See Client::copy_engine.

  /// The element at `index` of the array, which is in the box.
  std::byte* at(const Dims& index) const noexcept {
    std::byte* place = data;
    for (int64_t d = 0; d < index.size(); ++d) place += (index[d] - box.origin[d]) * byte_strides[d];
    return place;
  }
  /// Whether the host can read and write `part`, which is in the box, as one dense row-major run.
  bool has_run(const IndexDomain& part, int64_t itemsize) const noexcept {
    return is_host_readable && is_dense(part.shape, byte_strides, itemsize);
  }
};

/// References to the distinct buffers of an Array in this process, which keep the memory alive after a delete.
inline HeldBuffers hold_buffers(const Array& array, std::string_view operation) {
  array.check_alive(operation);
  const Sharding& sharding = *array.sharding();
  if (!array.is_shard() && array.sharding() == array.storage()->sharding()) {
    return array.storage()->hold();
  }
  HeldBuffers held;
  for (const BufferId b : sharding.buffers().ids()) {
    held.buffers.push_back(array.storage()->buffer(array.buffer_at(sharding.position_of(b))));
  }
  return held;
}

/// The boxes of these buffers, in their order.
inline std::vector<BoxMemory> boxes_of_array(const Array& array, const HeldBuffers& buffers,
                                             std::string_view operation) {
  const Sharding& sharding = *array.sharding();
  const CopyEngine* engine = array.is_host_readable() ? nullptr : sharding.devices()->client()->copy_engine();
  std::vector<BoxMemory> boxes;
  for (const Shard& shard : sharding.shards(array.shape(), operation)) {
    boxes.push_back({shard.box, buffers.device_data(shard.buffer), array.strides(shard.box.shape),
                     array.is_host_readable(), engine});
  }
  return boxes;
}

/// Runs a copy to or from `memory`.
inline void run_copy(const StridedCopy& copy, const BoxMemory& memory) {
  if (memory.engine == nullptr) return copy.run();
  memory.engine->run(std::span(&copy, 1));
}

/// A dense row-major copy of `box`, at `data`, to or from the memory of one of its parts.
inline void copy_from_box(std::byte* data, const IndexDomain& box, const BoxMemory& memory, const IndexDomain& part,
                          int64_t itemsize) {
  const BoxMemory dense{box, data, row_major_strides(box.shape, itemsize)};
  run_copy(StridedCopy(dense.at(part.origin), dense.byte_strides, memory.at(part.origin), memory.byte_strides,
                       part.shape, itemsize),
           memory);
}
inline void copy_to_box(const BoxMemory& memory, const IndexDomain& part, std::byte* data, const IndexDomain& box,
                        int64_t itemsize) {
  const BoxMemory dense{box, data, row_major_strides(box.shape, itemsize)};
  run_copy(StridedCopy(memory.at(part.origin), memory.byte_strides, dense.at(part.origin), dense.byte_strides,
                       part.shape, itemsize),
           memory);
}

}  // namespace artifex_devices
