// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/device/copy_engine.h"

namespace artifex_devices {

/// Copies of the CUDA driver, on one stream for each direction and GPU. Several workers stage memory of the host that
/// CUDA has not locked through locked buffers, as the driver would block for each copy and uses one thread. Boxes
/// within one GPU are copied by kernels; other boxes of dense runs are one call of the driver for their longest
/// dimension, and one for each element of the other dimensions.
class CudaCopies final : public CopyEngine {
 public:
  std::vector<Task> start(std::span<const StridedCopy> copies) const override;
  void run(std::span<const StridedCopy> copies) const override;
};

}  // namespace artifex_devices
