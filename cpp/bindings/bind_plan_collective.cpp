// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/planner/collective_bound.h"
#include "artifex_devices/planner/placed_group.h"
#include "bind_planner.h"
#include "gil.h"

namespace artifex_devices::bindings {
namespace {

namespace py = pybind11;

using GroupsOfDevices = std::vector<std::vector<int64_t>>;

struct FoundCollective {
  std::vector<CollectiveCost> costs;  // of the slowest group, cheapest first
  CollectiveBound bound;
};

FoundCollective cost_of(Collective op, double bytes, const Cluster& cluster, const GroupsOfDevices& groups,
                        int64_t alike) {
  FoundCollective found;
  for (const auto& group : groups) {
    const std::optional<NodeGroup> placed = placed_group(cluster, group);
    if (!placed) {
      throw_error(
          "plan_collective: the {} devices of a group, {} first, are no box of the cluster {}; expected evenly spaced "
          "chips along its axes; lay the mesh out with mesh_utils.create_device_mesh",
          group.size(), group.front(), cluster.name());
    }
    std::vector<CollectiveCost> costs = collective_costs(op, bytes, *placed);
    if (found.costs.empty() || costs.front().seconds() > found.costs.front().seconds()) found.costs = std::move(costs);
  }
  found.bound = collective_bound(op, bytes, cluster, groups, alike);
  return found;
}

py::dict plan_collective(const std::string& name, double bytes, const std::shared_ptr<Cluster>& cluster,
                         const std::vector<std::string>& axes, GroupsOfDevices groups, const PermutePairs& pairs) {
  const bool permutes = name == "permute";
  const auto op = collective_from_name(name);
  if (!op && !permutes) {
    throw_error(
        "plan_collective: {:?} is no collective; expected all_gather, reduce_scatter, all_reduce, all_to_all, "
        "broadcast or permute",
        name);
  }
  FoundCollective found;
  py::dict result;
  {
    const ReleaseGil release;
    int64_t alike = 1;
    if (groups.empty()) {
      groups = groups_along(*cluster, axes, !permutes);
      // The others lie like the first; only messages of a permute must meet on their links.
      if (!permutes) alike = static_cast<int64_t>(groups.size());
      if (!permutes) groups.resize(1);
    }
    if (permutes) {
      PermuteCost cost = permute_cost(bytes / static_cast<double>(groups.front().size()), pairs, *cluster, groups);
      found = {{cost.cost}, cost.bound};
    } else {
      found = cost_of(*op, bytes, *cluster, groups, alike);
    }
  }
  py::list entries;
  for (const CollectiveCost& cost : found.costs) {
    entries.append(py::make_tuple(std::string(cost.algorithm), std::string(cost.limit), cost.latency, cost.transfer,
                                  cost.is_bound));
  }
  const CollectiveBound& bound = found.bound;
  result["devices"] = groups.front().size();
  result["groups"] = groups.size();
  result["costs"] = std::move(entries);
  result["bytes_in"] =
      op ? received_bytes(*op, bytes, static_cast<int64_t>(groups.front().size())) : bound.device_bytes;
  result["bound_bytes"] = py::make_tuple(bound.device_bytes, bound.chip_bytes, bound.slice_bytes);
  result["bound_seconds"] = py::none();
  result["bound_error"] = "";
  try {
    result["bound_seconds"] = least_seconds(*cluster, bound.bytes_by_chip, bound.slice_bytes, bound.slices);
  } catch (const Unavailable& error) {
    result["bound_error"] = error.what();
  }
  return result;
}

}  // namespace

std::shared_ptr<Cluster> handle_of_cluster(const Client& client) {
  const auto* machine = dynamic_cast<const ClusterMachine*>(&client.machine());
  return machine ? std::const_pointer_cast<Cluster>(machine->cluster()) : nullptr;
}

void bind_plan_collective(py::module_& module) {
  module.def(
      "_cluster_of_device", [](const Device& device) { return handle_of_cluster(device.client()); }, py::arg("device"),
      "The Cluster that a device is of, or None.");
  module.def(
      "_plan_collective", &plan_collective, py::arg("op"), py::arg("bytes"), py::arg("cluster"), py::arg("axes"),
      py::arg("groups"), py::arg("pairs"),
      "Algorithms of one collective, cheapest first, with its bound, as a dict. `groups` empty: those along `axes`.");
}

}  // namespace artifex_devices::bindings
