// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "artifex_devices/cluster/cluster.h"

namespace artifex_devices {

/// Describes a cluster of the catalogue as people write it. Case, blanks, "nodes of" and the like do not matter.
/// - GPUs by their number: "64xH100", "h100 x 64", "64 h100", "72 gb200"; a number below a node's is a part of one;
/// - nodes and GPUs of each: "8x8 h100", "8 nodes x 8 h100";
/// - nodes or racks: "8 x dgx h100", "dgx h100 nodes=8", "gb200 nvl72", "4 nvl72", "mi300x" (one node);
/// - TPUs by shape or by number: "tpu v5e 16x16", "2 x v5e 16x16", "v5e-256", "v5litepod-256", "256 v5e". The number
///   after "v4-" and "v5p-" counts TensorCores, two of a chip, as Google's names do. A number of chips of v4, v5p and
///   7x means their most compact slice.
/// Options follow: nodes=, racks=, slices=, chips_per_node=, network_bandwidth= (bytes/s of a chip), host_memory=
/// (bytes). Throws InvalidArgument, with texts to write instead, for other texts and for counts that no cluster has.
ClusterRef cluster_from_text(std::string_view text);

}  // namespace artifex_devices
