// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifex_devices/advice/hardware_type.h"

namespace artifex_devices {

/// Batch sizes in examples. Source of the numbers: the device-placement document's table of hardware-specific values.
struct BatchSizeAdvice {
  int64_t min_batch_size = 0;
  int64_t optimal_batch_size = 0;
  int64_t critical_batch_size = 0;  // from here on the hardware's roofline is reached
  std::optional<int64_t> max_memory_batch_size;
  std::string_view notes;
};

const BatchSizeAdvice& batch_size_advice(HardwareType type) noexcept;

/// How many examples of `bytes_per_example` fit beside `model_state_bytes` into `free_bytes`:
/// floor((free_bytes - model_state_bytes) / bytes_per_example), not below 0. A model, not a measurement.
/// Throws InvalidArgument for negative numbers and bytes_per_example of 0.
int64_t max_memory_batch_size(int64_t free_bytes, int64_t bytes_per_example, int64_t model_state_bytes);

struct BatchSizeVerdict {
  bool is_valid = false;
  std::string message;
};

/// Plain words with all numbers: below minimum is invalid; below critical is valid and said to be below critical (or
/// "acceptable" without `warn_suboptimal`); from critical on acceptable, from optimal on optimal.
BatchSizeVerdict validate_batch_size(int64_t batch_size, HardwareType type, bool warn_suboptimal);

/// The same by other sizes than the table's, of hardware with this name.
BatchSizeVerdict validate_batch_size(int64_t batch_size, const BatchSizeAdvice& advice, std::string_view hardware,
                                     bool warn_suboptimal);

}  // namespace artifex_devices
