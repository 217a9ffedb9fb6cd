// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artifex_devices/cluster/hardware_type.h"

namespace artifex_devices::planner {

/// Batch sizes in examples. Source of the numbers: the table of hardware-specific values in the device-placement
/// document.
struct BatchSizeAdvice {
  int64_t min_batch_size = 0;
  int64_t optimal_batch_size = 0;
  int64_t critical_batch_size = 0;  // smallest batch that reaches the hardware's roofline
  std::optional<int64_t> max_memory_batch_size;
  std::string_view notes;
};

const BatchSizeAdvice& batch_size_advice(HardwareType type) noexcept;

/// Returns how many examples fit into `free_bytes` together with the model state: floor((free_bytes -
/// model_state_bytes) / bytes_per_example), not below 0. An estimate, not a measurement. Throws InvalidArgument for
/// negative numbers and bytes_per_example of 0.
int64_t max_memory_batch_size(int64_t free_bytes, int64_t bytes_per_example, int64_t model_state_bytes);

struct BatchSizeVerdict {
  bool is_valid = false;
  std::string message;
};

/// Returns a message with all numbers. A size below the minimum is invalid; below critical it is valid and reported as
/// below critical (or "acceptable" without `warn_suboptimal`); from critical on it is acceptable, from optimal on
/// optimal.
BatchSizeVerdict validate_batch_size(int64_t batch_size, HardwareType type, bool warn_suboptimal);

/// The same with sizes other than the table's, for hardware with this name.
BatchSizeVerdict validate_batch_size(int64_t batch_size, const BatchSizeAdvice& advice, std::string_view hardware,
                                     bool warn_suboptimal);

}  // namespace artifex_devices::planner
