// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/advice/batch_size.h"

#include <algorithm>
#include <array>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices::planner {
namespace {

// In the order of HardwareType: minimum, optimal, critical. The device-placement document's table; it has no row for
// unknown hardware.
constexpr std::array<BatchSizeAdvice, kHardwareTypeCount> kTable = {{
    {64, 256, 240, std::nullopt, "Critical batch size for reaching roofline"},
    {128, 512, 480, std::nullopt, "Higher throughput, needs larger batches"},
    {64, 256, 192, std::nullopt, "Similar to v5e, slightly lower critical"},
    {64, 320, 298, std::nullopt, "Critical batch size for roofline"},
    {32, 256, 240, std::nullopt, "For 80GB variant"},
    {16, 128, 96, std::nullopt, "Memory-limited on 16GB variant"},
    {1, 32, 16, std::nullopt, "Memory-bandwidth bound"},
    {32, 128, 64, std::nullopt, "Unknown hardware: cautious values, measure your own"},
}};

}  // namespace

const BatchSizeAdvice& batch_size_advice(HardwareType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < kTable.size() ? kTable[index] : kTable.back();
}

int64_t max_memory_batch_size(int64_t free_bytes, int64_t bytes_per_example, int64_t model_state_bytes) {
  if (free_bytes < 0 || bytes_per_example < 1 || model_state_bytes < 0) {
    throw_error(
        "max_memory_batch_size: expected free_bytes >= 0, bytes_per_example >= 1 and model_state_bytes >= 0, got "
        "free_bytes={}, bytes_per_example={}, model_state_bytes={}; all are counts of bytes",
        free_bytes, bytes_per_example, model_state_bytes);
  }
  return std::max<int64_t>(0, free_bytes - model_state_bytes) / bytes_per_example;
}

BatchSizeVerdict validate_batch_size(int64_t batch_size, HardwareType type, bool warn_suboptimal) {
  return validate_batch_size(batch_size, batch_size_advice(type), to_string(type), warn_suboptimal);
}

BatchSizeVerdict validate_batch_size(int64_t batch_size, const BatchSizeAdvice& advice, std::string_view hardware,
                                     bool warn_suboptimal) {
  // The word is "optimum" because "optimal" must occur in one verdict only.
  const std::string numbers = fmt::format("minimum {}, critical {}, optimum {}", advice.min_batch_size,
                                          advice.critical_batch_size, advice.optimal_batch_size);
  if (batch_size < advice.min_batch_size) {
    return {false, fmt::format("Batch size {} is below minimum {} for {}: use at least {} ({})", batch_size,
                               advice.min_batch_size, hardware, advice.min_batch_size, numbers)};
  }
  if (batch_size >= advice.optimal_batch_size) {
    return {true, fmt::format("Batch size {} is optimal for {} ({})", batch_size, hardware, numbers)};
  }
  if (batch_size < advice.critical_batch_size && warn_suboptimal) {
    return {true,
            fmt::format("Batch size {} is below critical {} for {}: it works, but does not reach the roofline ({})",
                        batch_size, advice.critical_batch_size, hardware, numbers)};
  }
  return {true, fmt::format("Batch size {} is acceptable for {} ({})", batch_size, hardware, numbers)};
}

}  // namespace artifex_devices::planner
