// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/training/reserved.h"

#include <cmath>

namespace artifex_devices::planner {

namespace {

constexpr double kCachingAllocator = 1.08;
constexpr double kContext = 3e8;
constexpr double kGiB = 1 << 30;
constexpr double kFirstCommunicator = 1 * kGiB;
constexpr double kNextCommunicator = 0.65 * kGiB;
constexpr double kTpuRuntime = 1 - 31.246 / 32;  // of the memory
constexpr double kMemoryError = 0.1;

}  // namespace

int64_t reserved_bytes(int64_t memory, const TrainingConfig& config, const TrainingHardware& hardware) noexcept {
  if (!hardware.is_gpu || config.framework == TrainingFramework::kMaxText) return memory;
  return whole_bytes(kCachingAllocator * to_real(memory));
}

int64_t runtime_bytes(const TrainingConfig& config, const TrainingHardware& hardware) noexcept {
  if (hardware.is_tpu) return whole_bytes(kTpuRuntime * to_real(hardware.device.memory_bytes));
  if (!hardware.is_gpu) return 0;
  double bytes = kContext;
  double next = kFirstCommunicator;
  for (const int64_t ways : {config.tensor, config.context, config.data, config.pipeline, config.expert}) {
    if (ways == 1) continue;
    bytes += next;
    next = kNextCommunicator;
  }
  return whole_bytes(bytes);
}

bool is_close(int64_t needed, int64_t available) noexcept {
  return std::abs(to_real(needed) - to_real(available)) <= kMemoryError * to_real(available);
}

}  // namespace artifex_devices::planner
