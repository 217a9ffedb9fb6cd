// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cluster_client.h"

#include <unordered_map>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_machine.h"

namespace artifex_devices {

std::shared_ptr<Client> make_cluster_client(ClusterRef cluster) {
  if (!cluster)
    throw_error("make_cluster_client: the cluster is null; make one by Cluster::make, tpu_cluster or gpu_cluster");
  const int64_t count = cluster->device_count();
  return Client::make(std::make_shared<ClusterMachine>(std::move(cluster)),
                      ClientOptions{.num_devices = count, .compile_only = true});
}

std::shared_ptr<Client> cluster_client(const ClusterRef& cluster) {
  static auto* clients = new std::unordered_map<const Cluster*, std::weak_ptr<Client>>;
  if (std::shared_ptr<Client> known = (*clients)[cluster.get()].lock()) return known;
  std::erase_if(*clients, [](const auto& each) { return each.second.expired(); });
  std::shared_ptr<Client> created = make_cluster_client(cluster);
  (*clients)[cluster.get()] = created;
  return created;
}

}  // namespace artifex_devices
