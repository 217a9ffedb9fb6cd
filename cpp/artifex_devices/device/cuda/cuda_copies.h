// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/device/copy_engine.h"

namespace artifex_devices {

/// Copies of the CUDA driver, on one stream for each direction and GPU. Memory of the host that CUDA has not locked is
/// staged through locked buffers, as the driver would block for each copy. It has no kernels: a box of dense runs is
/// one call for its longest dimension and one for each element of the others.
class CudaCopies final : public CopyEngine {
 public:
  void run(std::span<const StridedCopy> copies, bool interruptible) const override;
};

}  // namespace artifex_devices
