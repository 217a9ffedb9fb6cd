// SPDX-License-Identifier: Apache-2.0
// Strided copies on a GPU. tools/make_kernels.sh compiles this file to strided_kernel_ptx.h, which is committed, so that
// neither a build nor a user needs a compiler for GPUs. Clang compiles it without the headers of CUDA.
#include "artifex_devices/device/cuda/strided_kernel.h"

#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
#define IN_GPU_MEMORY __attribute__((address_space(1)))

using artifex_devices::cuda::KernelCopy;
using artifex_devices::cuda::KernelCopies;

using Bytes16 = unsigned __attribute__((ext_vector_type(4)));

/// Each thread copies one element in each step of the grid, the last dimension first.
template <class T>
DEVICE inline void copy(const KernelCopies& all) {
  const KernelCopy& each = all.copies[__nvvm_read_ptx_sreg_ctaid_y()];
  const unsigned step = __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
  unsigned i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
  for (; i < each.count; i += step) {
    unsigned rest = i;
    long long to = 0;
    long long from = 0;
    for (int d = static_cast<int>(each.dims) - 1; d > 0; --d) {
      const unsigned next = rest / each.shape[d];
      const long long index = rest - next * each.shape[d];
      to += index * each.to_strides[d];
      from += index * each.from_strides[d];
      rest = next;
    }
    to += static_cast<long long>(rest) * each.to_strides[0];
    from += static_cast<long long>(rest) * each.from_strides[0];
    *reinterpret_cast<IN_GPU_MEMORY T*>(each.to + to) = *reinterpret_cast<const IN_GPU_MEMORY T*>(each.from + from);
  }
}

extern "C" {
GLOBAL void strided_copy_1(KernelCopies all) { copy<unsigned char>(all); }
GLOBAL void strided_copy_2(KernelCopies all) { copy<unsigned short>(all); }
GLOBAL void strided_copy_4(KernelCopies all) { copy<unsigned>(all); }
GLOBAL void strided_copy_8(KernelCopies all) { copy<unsigned long long>(all); }
GLOBAL void strided_copy_16(KernelCopies all) { copy<Bytes16>(all); }
}
