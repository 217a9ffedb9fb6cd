// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/base/mutex.h"
#include "artifex_devices/device/cuda/driver.h"

namespace artifex_devices::cuda {

/// Facts of one GPU, read without a context.
struct GpuFacts {
  DeviceHandle handle = 0;
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int64_t memory_bytes = 0;
  std::string pci_address;     // "0000:34:00.0", lower case
  int compute_capability = 0;  // 90 for 9.0
  bool has_pools = false;      // stream-ordered allocation
  int64_t max_pitch = 0;       // bytes from a row to the next of a two-dimensional copy
};

/// The facts of all GPUs that CUDA_VISIBLE_DEVICES leaves. Throws Unavailable where the driver fails.
std::vector<GpuFacts> read_gpu_facts(const Driver& driver);

/// One GPU of the process with its primary context, which other libraries share, and our streams. Never destroyed.
class Gpu {
 public:
  Gpu(const Driver& driver, int ordinal, GpuFacts facts);

  int ordinal() const noexcept { return ordinal_; }
  const GpuFacts& facts() const noexcept { return facts_; }
  Context context() const noexcept { return context_; }
  // One stream for each direction, as GPUs have a copy engine for each.
  Stream from_host() const noexcept { return from_host_; }
  Stream to_host() const noexcept { return to_host_; }
  Stream within() const noexcept { return within_; }  // also from other GPUs

  /// An event from the pool, or a new one, for waits of the host. The context must be current.
  EventHandle take_event(const Driver& driver) const;
  void give_event(EventHandle event) const noexcept;
  /// Memory whose address other libraries know, by its begin. The library waits for their work before it copies.
  void add_exported(uint64_t begin, int64_t bytes) const;
  void remove_exported(uint64_t begin) const noexcept;
  bool is_exported(uint64_t address) const noexcept;
  /// The kernel that copies boxes of elements of 2^`log2_bytes` bytes, at most 16. The first call gives the driver the
  /// text of all of them to compile. The context must be current.
  Function strided_kernel(const Driver& driver, int log2_bytes) const;
  /// Lets copies between this GPU and `peer` go without the host, where the hardware can. Repeated calls do nothing.
  void enable_peer(const Driver& driver, const Gpu& peer) const;

 private:
  int ordinal_;
  GpuFacts facts_;
  Context context_ = nullptr;
  Stream from_host_ = nullptr;
  Stream to_host_ = nullptr;
  Stream within_ = nullptr;
  mutable Mutex<"CUDA events"> mutex_;
  mutable std::vector<EventHandle> events_;
  mutable std::vector<bool> peers_;  // by ordinal: enabled, or impossible
  mutable Mutex<"CUDA kernels"> kernels_mutex_;
  mutable std::array<Function, 5> kernels_{};
  mutable Mutex<"CUDA exported memory"> exported_mutex_;
  mutable std::map<uint64_t, uint64_t> exported_;  // end by begin
  mutable std::atomic<bool> has_exported_{false};
};

/// The number of GPUs that CUDA_VISIBLE_DEVICES leaves. Throws Unavailable where the driver fails.
int gpu_count(const Driver& driver);

/// A GPU of the process, by its number in CUDA's order. The first call for it creates its context, which takes a moment
/// and some memory of it.
const Gpu& gpu_of(const Driver& driver, int ordinal);

/// Makes a GPU's context current for a scope, and then restores the caller's context.
class ContextScope {
 public:
  ContextScope(const Driver& driver, const Gpu& gpu, std::string_view operation) : driver_(driver) {
    driver.check(driver.push_context(gpu.context()), operation, "cuCtxPushCurrent");
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope() {
    Context ours = nullptr;
    static_cast<void>(driver_.pop_context(&ours));
  }

 private:
  const Driver& driver_;
};

}  // namespace artifex_devices::cuda
