// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "artifex_devices/device/cuda/driver_abi.h"

namespace artifex_devices::cuda {

/// Why there is no usable driver, and what to do about it.
struct DriverProblem {
  std::string what;
  std::string fix;
};

/// Facts of the machine and the process that explain why the driver is not usable.
struct DriverSurroundings {
  bool has_kernel_module = false;  // the kernel's part of the driver is loaded
  bool is_container = false;
  bool is_kubernetes = false;
  std::string denied_device;                // a device file of the driver that this process may not open, or ""
  std::optional<std::string> visible_gpus;  // CUDA_VISIBLE_DEVICES
};

/// Reads the files below `root` ("" for the machine's own) and the environment: call with the GIL held.
DriverSurroundings read_driver_surroundings(const std::string& root = "");

/// The library cannot be opened; `reason` is the loader's.
DriverProblem explain_missing_library(const std::string& library, const std::string& reason,
                                      const DriverSurroundings& surroundings);

/// The library lacks the functions `missing`. `version` is 10020 for a driver of CUDA 10.2, or 0 if unknown.
DriverProblem explain_old_driver(const std::string& library, const std::string& missing, int version);

/// A function of the driver returned `error`; `what` begins the problem.
DriverProblem explain_error(std::string what, Result error, const DriverSurroundings& surroundings);

}  // namespace artifex_devices::cuda
