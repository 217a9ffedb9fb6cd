// SPDX-License-Identifier: Apache-2.0
// Copies of boxes on a GPU. tools/make_kernels.sh compiles this file to strided_kernel_ptx.h, which is committed, so that
// neither a build nor a user needs a compiler for GPUs. Clang compiles it without the headers of CUDA.
#include "artifex_devices/device/cuda/strided_kernel.h"

#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
#define IN_GPU_MEMORY __attribute__((address_space(1)))

using artifex_devices::cuda::KernelBox;
using artifex_devices::cuda::KernelBoxes;

using Bytes16 = unsigned __attribute__((ext_vector_type(4)));

/// Each thread copies one element in each step of the grid, the last dimension first.
template <class T>
DEVICE inline void copy(const KernelBoxes& all) {
  const KernelBox& box = all.boxes[__nvvm_read_ptx_sreg_ctaid_y()];
  const unsigned step = __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
  unsigned i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
  for (; i < box.count; i += step) {
    unsigned rest = i;
    long long to = 0;
    long long from = 0;
    for (int d = static_cast<int>(box.dims) - 1; d > 0; --d) {
      const unsigned next = rest / box.shape[d];
      const long long index = rest - next * box.shape[d];
      to += index * box.to_strides[d];
      from += index * box.from_strides[d];
      rest = next;
    }
    to += static_cast<long long>(rest) * box.to_strides[0];
    from += static_cast<long long>(rest) * box.from_strides[0];
    *reinterpret_cast<IN_GPU_MEMORY T*>(box.to + to) = *reinterpret_cast<const IN_GPU_MEMORY T*>(box.from + from);
  }
}

extern "C" {
GLOBAL void strided_copy_1(KernelBoxes all) { copy<unsigned char>(all); }
GLOBAL void strided_copy_2(KernelBoxes all) { copy<unsigned short>(all); }
GLOBAL void strided_copy_4(KernelBoxes all) { copy<unsigned>(all); }
GLOBAL void strided_copy_8(KernelBoxes all) { copy<unsigned long long>(all); }
GLOBAL void strided_copy_16(KernelBoxes all) { copy<Bytes16>(all); }
}
