// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/affinity.h"

#include <cerrno>

namespace artifex_devices {
namespace {

constexpr size_t kMostCpus = size_t{1} << 20;  // ends the search if the system rejects every size

}  // namespace

AffinityMask::AffinityMask() noexcept {
  if (sched_getaffinity(0, sizeof(small_), &small_) == 0) return;
  for (size_t cpus = size_t{2} * CPU_SETSIZE; errno == EINVAL && cpus <= kMostCpus; cpus *= 2) {
    large_.reset(CPU_ALLOC(cpus));
    if (!large_) break;
    bytes_ = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes_, large_.get()) == 0) return;
  }
  large_.reset();
  bytes_ = 0;
}

}  // namespace artifex_devices
