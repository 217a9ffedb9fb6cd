// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// A view of an array in host memory, such as a NumPy ndarray. Strides are in bytes, of any sign. `owner` keeps the
/// memory alive; it may be empty if the caller does.
struct HostView {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Dims shape;
  Dims byte_strides;
  bool writable = false;
  std::shared_ptr<void> owner = nullptr;
  EventRef ready = nullptr;  // set when the memory is written; null: it is already

  /// Bytes of all elements. Only for shapes whose bytes fit 63 bits.
  int64_t nbytes() const noexcept {
    int64_t bytes = itemsize(dtype);
    for (const int64_t size : shape) bytes *= size;
    return bytes;
  }
};

}  // namespace artifex_devices
