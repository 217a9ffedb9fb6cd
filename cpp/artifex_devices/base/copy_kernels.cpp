// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/copy_kernels.h"

#include "artifex_devices/base/isa.h"

namespace artifex_devices {

const CopyKernels& copy_kernels() noexcept { return *ARTIFEX_VARIANT(const CopyKernels*, active_isa(), &copy_kernels); }

}  // namespace artifex_devices
