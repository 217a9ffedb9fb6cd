// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/emulated_gpu/emulated_gpu_backend.h"

#include <fmt/format.h>

#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/cpu/arena.h"

namespace artifex_devices {
namespace {

class EmulatedGpuBackend final : public Backend {
 public:
  explicit EmulatedGpuBackend(EmulatedGpu gpu) : gpu_(std::move(gpu)) {}

  const std::string& platform() const noexcept override { return platform_; }
  const std::string& device_kind(int64_t) const noexcept override { return gpu_.device_kind; }
  bool is_emulated() const noexcept override { return true; }
  std::string repr(const Device& device) const override {
    return fmt::format("GpuDevice(id={})", device.id().number());
  }

  bool has_own_memory() const noexcept override { return true; }
  MemorySpace& device_space(int64_t, int node, AllocatorKind allocator) const override {
    return Arena::of_emulated_gpus(node, allocator != AllocatorKind::kPlatform);
  }
  bool is_host_readable() const noexcept override { return false; }
  std::optional<int64_t> memory_bytes(int64_t) const noexcept override { return gpu_.memory_bytes; }

  void check(const Machine&, int64_t, const ClientOptions& options) const override {
    if (options.allocator) options.allocator->check("make_client");
  }

 private:
  std::string platform_ = "gpu";
  EmulatedGpu gpu_;
};

}  // namespace

EmulatedGpu emulated_gpu_from_name(std::string_view name) {
  const ClusterRef node = gpu_cluster(name, 1, {.chips_per_node = 1});
  const auto& bytes = node->chip().memory_bytes;
  return {.device_kind = node->chip().device_kind,
          .memory_bytes = bytes ? std::optional(static_cast<int64_t>(bytes->value)) : std::nullopt};
}

BackendRef make_emulated_gpu_backend(EmulatedGpu gpu) { return std::make_shared<EmulatedGpuBackend>(std::move(gpu)); }

}  // namespace artifex_devices
