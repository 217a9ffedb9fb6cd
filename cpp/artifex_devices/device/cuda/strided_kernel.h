// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parameter of the kernels of strided_kernel.cu. Compiled for the processor and for GPUs, so it includes nothing.
namespace artifex_devices::cuda {

inline constexpr int kKernelDims = 8;
inline constexpr int kKernelCopies = 16;

/// A copy of elements between two strided memories of one GPU. Strides are in bytes.
struct KernelCopy {
  unsigned long long to;
  unsigned long long from;
  unsigned count;  // elements: the product of the shape
  unsigned dims;
  unsigned shape[kKernelDims];
  long long to_strides[kKernelDims];
  long long from_strides[kKernelDims];
};
static_assert(sizeof(KernelCopy) == 184);

/// The copies of one launch: the blocks (x, i) of the grid make copy i.
struct KernelCopies {
  KernelCopy copies[kKernelCopies];
};
static_assert(sizeof(KernelCopies) <= 4096);  // the largest parameter of a kernel on all GPUs

}  // namespace artifex_devices::cuda
