// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/copy_views.h"

#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/executor.h"

namespace artifex_devices {

void copy_views(std::span<const ViewCopy> copies) {
  int64_t bytes = 0;
  for (size_t i = 0; i < copies.size(); ++i) {
    const auto& [to, from] = copies[i];
    if (!to.writable || to.dtype != from.dtype || to.shape != from.shape) {
      throw_error(
          "copy_views: destination {} is {}{}{} and its source {}{}; expected a writable destination of that dtype and "
          "shape",
          i, to.writable ? "" : "read-only ", name(to.dtype), to_string(to.shape), name(from.dtype),
          to_string(from.shape));
    }
    bytes += checked_product(to.shape, "copy_views") * itemsize(to.dtype);
  }
  CopyBatch batch;
  batch.reserve(static_cast<int64_t>(copies.size()));
  for (const auto& [to, from] : copies) {
    batch.add(StridedCopy(to.data, to.byte_strides, from.data, from.byte_strides, to.shape, itemsize(to.dtype), bytes),
              kAnyLane);
  }
  host_executor().run(batch);
}

}  // namespace artifex_devices
