// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/cluster/cluster_machine.h"
#include "artifex_devices/device/client.h"

namespace artifex_devices {

/// Devices of a cluster, to plan with: compile-only, of the chip's platform and kind, each with its place. This process
/// plans for all hosts: every device counts as its own, and `Device::process_index` is the number of the host. Throws
/// InvalidArgument for a null cluster.
std::shared_ptr<Client> make_cluster_client(ClusterRef cluster);

/// The cluster that a client's devices are of; nullptr for those of a machine.
inline const Cluster* cluster_of(const Client& client) noexcept { return cluster_of(client.machine()); }

}  // namespace artifex_devices
