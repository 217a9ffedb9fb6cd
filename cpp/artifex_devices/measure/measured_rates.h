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

/// Measures FLOP/s of products of matrices that fit the caches, one product per worker at a time: the peak of the
/// cores. `dtype` is float32 or float64 (else TypeMismatch).
RateSeries measure_gemm_rate(const std::vector<LaneId>& lanes, Isa isa, DType dtype, const RateOptions& options);

struct StreamRates {
  int64_t array_bytes = 0;  // of each of the three arrays, over all workers
  int64_t cache_bytes = 0;  // last-level caches of the lanes' CPUs; 0 if unknown
  std::vector<StreamKernel> kernels;
  std::vector<RateSeries> series;  // bytes/s, one for each kernel
};

/// Measures bytes/s of STREAM's loops on arrays of four times the last-level caches, each worker on memory near it. The
/// arrays are smaller if they do not fit into an eighth of the memory that the process may use, or a quarter of the
/// available memory. `options.seconds` is the time for all kernels together. Throws OutOfMemory if there is too little
/// memory.
StreamRates measure_stream_rates(const std::vector<LaneId>& lanes, const RateOptions& options);

/// CPUs of the lanes on the live machine.
std::vector<int> cpus_of(const std::vector<LaneId>& lanes);

/// Returns the bytes of the last-level caches of the CPUs, each counted once; 0 if unknown. Read under `root`.
int64_t last_level_cache_bytes(const std::vector<int>& cpus, const std::string& root = "");

}  // namespace artifex_devices
