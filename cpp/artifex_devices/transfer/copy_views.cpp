// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/copy_views.h"

#include <algorithm>

#include "artifex_devices/base/strided_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/copy_chain.h"

namespace artifex_devices {
namespace {

std::byte* start(const HostView& view) { return static_cast<std::byte*>(view.data); }

/// The run that the copies are, if they have one form and are at equal distances; else an empty one.
BoxRun run_of(std::span<const ViewCopy> copies) {
  const ViewCopy& first = copies.front();
  BoxRun run{start(first.to), start(first.from), 1};
  for (const auto& [to, from] : copies.subspan(1)) {
    if (to.dtype != first.to.dtype || to.shape != first.to.shape || to.byte_strides != first.to.byte_strides ||
        from.byte_strides != first.from.byte_strides || !run.take(start(to), start(from))) {
      return {};
    }
  }
  return run;
}

}  // namespace

CopyBatch batch_of(std::span<const ViewCopy> copies) {
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
  if (copies.empty()) return batch;
  if (const BoxRun run = run_of(copies); run.count > 0) {
    const auto& [to, from] = copies.front();
    const BoxForm form{to.shape, to.byte_strides, from.byte_strides, itemsize(to.dtype), bytes};
    batch.add(joined(form, run).copy(run.to, run.from), kAnyLane);
  } else {
    batch.reserve(static_cast<int64_t>(copies.size()));
    for (const auto& [to, from] : copies) {
      batch.add(
          StridedCopy(to.data, to.byte_strides, from.data, from.byte_strides, to.shape, itemsize(to.dtype), bytes),
          kAnyLane);
    }
  }
  return batch;
}

void copy_views(std::span<const ViewCopy> copies) {
  CopyBatch batch = batch_of(copies);
  host_executor().run(batch);
}

}  // namespace artifex_devices
