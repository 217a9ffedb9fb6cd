// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "artifex_planner/training/memory.h"

namespace artifex_devices::planner {

/// Bytes that the allocator of a program takes from a device for `memory` allocated bytes. PyTorch caches freed blocks
/// and splits them: 1.08 times as many. Eight reports of TorchTitan, which determine nothing else, are 0.99 to 1.28
/// times the allocated bytes of this model, 1.08 in the median (docs/planner_accuracy.md, "Reserved memory"). XLA
/// places all buffers of a step when it compiles it: 1 on TPUs and for MaxText.
int64_t reserved_bytes(int64_t memory, const TrainingConfig& config, const TrainingHardware& hardware) noexcept;

/// Bytes of a device outside of that allocator.
///
/// - GPU: the CUDA context, about 300 MB since kernels are loaded lazily (pytorch/pytorch#107667), and the buffers of
///   communicators: 1 GiB for the first and 0.65 GiB for each further one (Lumi-supercomputer/LUMI-AI-Guide#111,
///   measured with RCCL; NVIDIA/nccl#864 reports 1.6 GB for the first). Each axis above 1 has a communicator.
/// - TPU: the runtime leaves 31.246 of 32 GiB of a TPU v6e to programs (EnzymeAD/Enzyme-JAX#2422).
/// - Other devices: 0.
int64_t runtime_bytes(const TrainingConfig& config, const TrainingHardware& hardware) noexcept;

/// Bytes that a device must have for `memory` allocated bytes.
inline int64_t needed_bytes(int64_t memory, const TrainingConfig& config, const TrainingHardware& hardware) noexcept {
  return reserved_bytes(memory, config, hardware) + runtime_bytes(config, hardware);
}

/// Whether the needed bytes are so near to the available ones that the error of the memory model decides whether they
/// fit: within 10 %, the median error of the published runs in docs/planner_accuracy.md.
bool is_close(int64_t needed, int64_t available) noexcept;

}  // namespace artifex_devices::planner
