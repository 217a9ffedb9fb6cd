// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {

/// Creates the devices of a cluster for planning: compile-only, with the chip's platform and kind and their places.
/// This process plans for all hosts: every device is addressable, and `Device::process_index` is the number of the
/// host. Throws InvalidArgument for a null cluster.
std::shared_ptr<Client> make_cluster_client(ClusterRef cluster);

/// make_cluster_client() once for each cluster while something of its client is alive: two calls return the same
/// devices. Not thread-safe.
std::shared_ptr<Client> cluster_client(const ClusterRef& cluster);

/// Returns the cluster of a client's devices, or nullptr for devices of a machine.
inline const Cluster* cluster_of(const Client& client) noexcept { return client.backend().cluster(); }

}  // namespace artifex_devices
