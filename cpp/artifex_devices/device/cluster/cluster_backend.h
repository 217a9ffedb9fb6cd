// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/device/backend.h"

namespace artifex_devices {

/// Creates the backend of the devices of a simulated cluster, which are for planning only.
BackendRef make_cluster_backend(ClusterRef cluster);

}  // namespace artifex_devices
