// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "artifex_devices/array/host_view.h"
#include "artifex_devices/device/copy_batch.h"

namespace artifex_devices {

struct ViewCopy {
  HostView to;
  HostView from;
};

/// Copies host arrays of any strides to others, on several cores from config().parallel_copy_bytes on. Destinations
/// overlap neither each other nor any source. Throws InvalidArgument for the first pair whose shapes or dtypes differ
/// or whose destination is read-only; nothing is copied then.
void copy_views(std::span<const ViewCopy> copies);

/// The batch of copy_views. Arrays of one shape at equal distances are one copy: the pieces of an all_to_all are one
/// transpose.
CopyBatch batch_of(std::span<const ViewCopy> copies);

}  // namespace artifex_devices
