// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cpu/cpu_backend.h"

#include <fmt/format.h>

#include "artifex_devices/device/client.h"
#include "artifex_devices/device/cpu/arena.h"

namespace artifex_devices {
namespace {

class CpuBackend final : public Backend {
 public:
  const std::string& platform() const noexcept override { return name_; }
  const std::string& device_kind(int64_t) const noexcept override { return name_; }
  std::string repr(const Device& device) const override {
    return fmt::format("CpuDevice(id={})", device.id().number());
  }
  MemorySpace& device_space(int64_t, int node, AllocatorKind allocator) const override {
    return Arena::of_node(node, MemoryKind::kDevice, allocator != AllocatorKind::kPlatform);
  }
  void check(const Machine&, int64_t, const ClientOptions& options) const override {
    if (options.allocator) options.allocator->check_for_cpu("make_client");
  }

 private:
  std::string name_ = "cpu";
};

}  // namespace

BackendRef make_cpu_backend() { return std::make_shared<CpuBackend>(); }

}  // namespace artifex_devices
