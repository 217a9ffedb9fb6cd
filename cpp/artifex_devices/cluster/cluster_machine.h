// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// The machine of a cluster's devices: one domain without CPUs, because the hosts' CPUs are unknown.
class ClusterMachine final : public Machine {
 public:
  /// `cluster` is not null.
  explicit ClusterMachine(ClusterRef cluster) : cluster_(std::move(cluster)), source_("cluster " + cluster_->name()) {}

  const ClusterRef& cluster() const noexcept { return cluster_; }

  bool is_live() const noexcept override { return false; }
  const std::string& source() const noexcept override { return source_; }
  const MachineCounts& counts() const noexcept override { return counts_; }
  const std::vector<NumaNode>& numa_nodes() const noexcept override { return nodes_; }
  const std::vector<CpuDomain>& cpu_domains() const noexcept override { return domains_; }
  int usable_cpus() const noexcept override { return 1; }
  int64_t usable_memory_bytes() const noexcept override { return 0; }
  /// Throws Unavailable: hwloc does not know the hosts of a cluster.
  std::string to_xml() const override;

 private:
  ClusterRef cluster_;
  std::string source_;
  MachineCounts counts_;
  std::vector<NumaNode> nodes_{NumaNode{}};
  std::vector<CpuDomain> domains_{CpuDomain{}};
};

}  // namespace artifex_devices
