// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/platform_version.h"
#include "artifex_devices/topology/cluster.h"
#include "artifex_devices/topology/described_machine.h"

namespace artifex_devices {
namespace {

// Nothing is known of the hosts' CPUs: one domain without any.
std::shared_ptr<const Machine> host_of(const Cluster& cluster) {
  MachineDescription description;
  description.source = fmt::format("cluster {}", cluster.name());
  description.platform_version = platform_version();
  description.numa_nodes = {NumaNode{}};
  description.cpu_domains = {CpuDomain{}};
  description.usable_cpus = 1;
  return std::make_shared<DescribedMachine>(std::move(description));
}

}  // namespace

std::shared_ptr<Client> Client::make(std::shared_ptr<const Cluster> cluster) {
  if (!cluster) fail("make_client: the cluster is null; make one of Cluster::make, tpu_cluster or gpu_cluster");
  std::shared_ptr<Client> client =
      make(host_of(*cluster), ClientOptions{.num_devices = cluster->device_count(), .compile_only = true});
  client->platform_ = cluster->chip().platform;
  client->cluster_ = std::move(cluster);
  for (int64_t id = 0; id < client->count_; ++id) {
    Device& device = client->devices_[static_cast<size_t>(id)];
    const ClusterPlace place = device.place();
    device.process_index_ = static_cast<int>(place.process);
    device.local_id_ = place.local_id;
  }
  return client;
}

}  // namespace artifex_devices
