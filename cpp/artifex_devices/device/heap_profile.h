// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artifex_devices {

/// Memory of arrays on one device, by the line that created them.
struct HeapSample {
  std::string device = {};  // "cpu:0"
  int64_t count = 0;        // allocations
  int64_t bytes = 0;
  std::string file = {};  // "" if unknown: then the sample has no location
  int64_t line = 0;
  std::string function = {};  // "" if unknown
};

/// Returns the samples as a pprof profile (github.com/google/pprof, proto/profile.proto), not compressed. The sample
/// types are "allocations" in "count" and "space" in "bytes", and samples have the labels "kind" = "buffer" and
/// "device", all as in JAX. Samples of one device and line are added up, in order of their first occurrence. `time_ns`
/// is the time since the epoch, or 0 for none. Throws InvalidArgument for negative counts and bytes, text that is not
/// UTF-8, and sums over 2^63 - 1.
std::string heap_profile(const std::vector<HeapSample>& samples, int64_t time_ns);

}  // namespace artifex_devices
