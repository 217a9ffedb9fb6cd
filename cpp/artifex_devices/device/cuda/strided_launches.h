// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "artifex_devices/device/cuda/gpus.h"
#include "artifex_devices/device/cuda/loop_nest.h"
#include "artifex_devices/device/cuda/strided_kernel.h"

namespace artifex_devices::cuda {

/// Strided copies within the memory of GPUs, collected to be few launches of a kernel on `Gpu::within()`. The driver's
/// own copies of rows reach 56 % of the rate of a plain copy on an H100 (2026-11), and need a call for every other
/// dimension.
class StridedLaunches {
 public:
  explicit StridedLaunches(const Driver& driver) : driver_(driver) {}

  /// Collects a copy; launches the copies of its GPU once there are enough for one kernel.
  void add(const LoopNest& nest, const Gpu& gpu);
  /// Launches all collected copies.
  void launch_all();

 private:
  /// Copies of one launch.
  struct Collected {
    const Gpu* gpu;
    int log2_bytes;  // of an element
    int copies = 0;
    KernelCopies parameter;
  };
  void collect(const LoopNest& nest, const Gpu& gpu, int log2_bytes);
  void launch(Collected* collected);

  const Driver& driver_;
  std::vector<Collected> collected_;
};

}  // namespace artifex_devices::cuda
