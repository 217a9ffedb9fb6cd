// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/base/event.h"
#include "artifex_devices/base/shape.h"

namespace artifex_devices {

/// Somebody's array in host memory: what a NumPy ndarray looks like from here. Strides are in bytes, any sign.
/// `owner` keeps the memory alive as long as it is held; it may be empty when the caller does that.
struct HostView {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Dims shape;
  Dims byte_strides;
  bool writable = false;
  std::shared_ptr<void> owner = nullptr;
  EventRef ready = nullptr;  // null: the memory is written; else it is when this is set
};

}  // namespace artifex_devices
