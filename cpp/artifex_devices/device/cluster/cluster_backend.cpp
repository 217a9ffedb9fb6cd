// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cluster/cluster_backend.h"

#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/cpu/arena.h"

namespace artifex_devices {
namespace {

class ClusterBackend final : public Backend {
 public:
  explicit ClusterBackend(ClusterRef cluster) : cluster_(std::move(cluster)) {}

  const std::string& platform() const noexcept override { return cluster_->chip().platform; }
  const std::string& device_kind(int64_t) const noexcept override { return cluster_->chip().device_kind; }

  std::string repr(const Device& device) const override {
    const char* name = platform() == "tpu" ? "Tpu" : platform() == "gpu" ? "Gpu" : "Cpu";
    if (cluster_->inside().kind != NetworkKind::kTorus) {
      return fmt::format("{}Device(id={}, process_index={})", name, device.id().number(),
                         device.process_index().number());
    }
    const ClusterPlace at = cluster_->place_of(device.id().number());
    return fmt::format("{}Device(id={}, process_index={}, coords=({},{},{}), core_on_chip={})", name,
                       device.id().number(), device.process_index().number(), at.coords[0], at.coords[1], at.coords[2],
                       at.core_on_chip);
  }

  MemorySpace& device_space(int64_t, int node, AllocatorKind) const override {
    return Arena::of_node(node);  // unused: the devices are compile-only
  }
  std::optional<int64_t> memory_bytes(int64_t) const noexcept override {
    return cluster_->device_memory_bytes().value_or(0);
  }

  void check(const Machine& machine, int64_t count, const ClientOptions& options) const override {
    if (options.allocator) options.allocator->check_for_cpu("make_client");
    if (count == cluster_->device_count() && options.compile_only && options.processes.empty()) return;
    throw_error(
        "make_client: {} devices of {} are requested; expected all {}, compile-only and without processes; use "
        "make_cluster_client",
        count, machine.source(), cluster_->device_count());
  }
  const Cluster* cluster() const noexcept override { return cluster_.get(); }

 private:
  ClusterRef cluster_;
};

}  // namespace

BackendRef make_cluster_backend(ClusterRef cluster) { return std::make_shared<ClusterBackend>(std::move(cluster)); }

}  // namespace artifex_devices
