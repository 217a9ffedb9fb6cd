// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifex_devices/base/dtype.h"
#include "artifex_devices/measure/gemm.h"
#include "artifex_devices/measure/lane_rate.h"
#include "artifex_devices/measure/stream.h"

namespace artifex_devices {

/// FLOP/s of products of matrices that stay in the caches, one a worker at a time: what the cores can do at most.
/// `dtype` is float32 or float64 (else TypeMismatch).
RateSeries measure_gemm_rate(const std::vector<int>& lanes, Isa isa, DType dtype, const RateOptions& options);

struct StreamRates {
  int64_t array_bytes = 0;  // of each of the three arrays, all workers together
  int64_t cache_bytes = 0;  // last-level caches of the lanes' CPUs; 0 where the system does not say
  std::vector<StreamKernel> kernels;
  std::vector<RateSeries> series;  // bytes/s, one for each kernel
};

/// Bytes/s of STREAM's loops on arrays of four times the last-level caches, each worker on memory near it; smaller
/// where an eighth of the memory that the process may use, or a quarter of what the system has left, does not hold
/// them. `options.seconds` are for all kernels together. Throws OutOfMemory when there is not even that.
StreamRates measure_stream_rates(const std::vector<int>& lanes, const RateOptions& options);

/// CPUs of the lanes on the live machine.
std::vector<int> cpus_of(const std::vector<int>& lanes);

/// Bytes of the last-level caches that the CPUs have, each counted once; 0 where the system does not say. Read under
/// `root` (tests give a made-up one).
int64_t last_level_cache_bytes(const std::vector<int>& cpus, const std::string& root = "");

}  // namespace artifex_devices
