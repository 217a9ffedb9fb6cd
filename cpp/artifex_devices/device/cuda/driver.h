// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "artifex_devices/device/cuda/driver_abi.h"
#include "artifex_devices/device/cuda/driver_problem.h"

namespace artifex_devices::cuda {

/// The driver's library, found by the loader's search. Never `libcuda.so`, which may be a stub of the toolkit.
inline constexpr const char* kDriverSoname = "libcuda.so.1";
/// Environment variable with the absolute path of another library, for tests.
inline constexpr const char* kDriverVariable = "ARTIFEX_CUDA_LIBRARY";

/// Functions of the CUDA driver. Immutable; the library stays loaded.
struct Driver {
#define ARTIFEX_CUDA_MEMBER(member, name, parameters) Result(*member) parameters = nullptr;
  ARTIFEX_CUDA_FUNCTIONS(ARTIFEX_CUDA_MEMBER)
#undef ARTIFEX_CUDA_MEMBER
  std::string library;  // the loaded library
  int version = 0;      // 12040 for CUDA 12.4

  /// "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
  std::string text_of(Result error) const;
  /// Throws Unavailable unless `result` is success. `operation` begins the message, `function` is the driver's.
  void check(Result result, std::string_view operation, std::string_view function) const;
};

/// The driver, or null with the reason. Loads and initialises the library at the first call that succeeds; a failed
/// call is repeated by the next one. Reads the environment: call with the GIL held. In a forked child of a process that
/// has used CUDA it is null, as CUDA cannot be used there.
const Driver* find_driver(DriverProblem* problem);

/// The driver of a process that has called find_driver with success. Throws Unavailable in a forked child.
const Driver& driver(std::string_view operation);

/// The same for releases: null in a forked child, whose memory is leaked.
const Driver* driver_for_release() noexcept;

}  // namespace artifex_devices::cuda
