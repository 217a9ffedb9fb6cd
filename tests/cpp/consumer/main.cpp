// SPDX-License-Identifier: Apache-2.0
// The C++ library without Python: which shard each position of a 2 x 4 mesh holds, and the domains of a machine.
#include <cstdio>
#include <cstdlib>

#include "artifex_devices/partition/abstract_mesh.h"
#include "artifex_devices/partition/partition_spec.h"
#include "artifex_devices/partition/shard_domains.h"
#include "artifex_devices/topology/machine.h"

namespace ad = artifex_devices;

int main() {
  const auto machine = ad::Machine::from_synthetic("pack:2 numa:1 core:4 pu:1");
  const ad::AbstractMesh mesh({ad::AxisName("data"), ad::AxisName("model")}, {2, 4});
  const ad::PartitionSpec spec({ad::SpecEntry(ad::AxisName("data"))});
  const ad::TileGrid grid(mesh, spec);
  std::printf("%s over %zu domains: %lld tiles, %lld replicas\n", mesh.to_string().c_str(),
              machine->cpu_domains().size(), static_cast<long long>(grid.tiles()),
              static_cast<long long>(grid.replicas()));
  const bool right = machine->cpu_domains().size() == 2 && grid.tiles() == 2 && grid.replicas() == 4 &&
                     grid.tile(5) == 1 && grid.replica(5) == 1;
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
