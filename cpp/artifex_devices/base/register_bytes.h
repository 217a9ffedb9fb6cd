// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace artifex_devices {

/// Bytes of the widest vector register that the file is compiled for. Differs between objects of one program: use it
/// only in code private to one object, as in copy_kernels_template.h.
#if defined(__AVX512BW__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX2__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

}  // namespace artifex_devices
