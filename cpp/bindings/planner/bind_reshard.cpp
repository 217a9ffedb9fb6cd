// SPDX-License-Identifier: Apache-2.0
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "artifex_devices/partition/reshard_check.h"
#include "artifex_planner/collective/plan.h"
#include "artifex_planner/reshard/plan.h"
#include "bind_planner.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

py::array_t<int64_t> ndarray_of(const std::vector<int64_t>& values) {
  return py::array_t<int64_t>(static_cast<py::ssize_t>(values.size()), values.data());
}

/// The arguments of artifex_devices.planner.PlanStep.
py::tuple step_arguments(const PlannedReshardStep& step) {
  return py::make_tuple(std::string(step.move), step.text, step.devices, step.bytes_received, step.busiest_bytes,
                        py::make_tuple(step.shard_bytes, step.shard_bytes_after),
                        step.price ? py::object(estimate_arguments(*step.price)) : py::none(), step.why_no_price);
}

py::dict strategy_dict(PlannedStrategy plan, const std::shared_ptr<Sharding>& destination) {
  py::dict result;
  result["way"] = std::string(to_string(plan.strategy));
  py::list steps;
  for (const PlannedReshardStep& step : plan.steps) steps.append(step_arguments(step));
  result["steps"] = std::move(steps);
  result["bytes_received"] = plan.bytes_received;
  result["busiest_bytes"] = plan.busiest_bytes;
  result["count_bytes"] = py::cpp_function([bytes_in = std::move(plan.bytes_in), destination] {
    return py::make_tuple(ndarray_of(device_ids(*destination)), ndarray_of(run_blocking(bytes_in)));
  });
  py::dict links;
  for (const auto& [link, bytes] : plan.bytes_by_link) links[py::str(std::string(link))] = bytes;
  result["bytes_by_link"] = std::move(links);
  result["bytes_copied"] = plan.bytes_copied;
  result["peak_bytes"] = plan.peak_bytes;
  result["is_cheapest"] = plan.is_cheapest;
  return result;
}

py::dict reshard_dict(const std::vector<int64_t>& global_shape, int64_t itemsize,
                      const std::shared_ptr<Sharding>& source, const std::shared_ptr<Sharding>& destination,
                      const ClusterOrNone& cluster, std::optional<int64_t> memory_limit,
                      const std::optional<std::string>& strategy) {
  const Dims shape = dims(global_shape);
  ReshardRequest request{cluster.value_or(nullptr), memory_limit, {}};
  if (strategy) request.strategy = *strategy == "copies" ? ReshardStrategy::kCopies : ReshardStrategy::kCollectives;
  PlannedReshard planned = run_blocking([&] { return plan_reshard(shape, itemsize, *source, *destination, request); });
  py::dict result;
  result["cluster"] = py::cast(std::const_pointer_cast<Cluster>(planned.cluster));  // None where there is none
  const ReshardLowerBound& bound = planned.lower_bound;
  result["lower_bound"] =
      py::make_tuple(bound.total_bytes, bound.busiest_bytes, py::tuple(py::cast(bound.host_bytes)), bound.seconds);
  result["plan"] = strategy_dict(std::move(planned.plan), destination);
  result["other"] =
      planned.other ? py::object(strategy_dict(*std::move(planned.other), destination)) : py::object(py::none());
  result["why_no_other"] = planned.why_no_other;
  result["xla_gathers"] = planned.xla_gathers;
  result["why_xla_is_not_known"] = planned.why_xla_is_not_known;
  return result;
}

py::tuple reshard_ingress(const std::vector<int64_t>& global_shape, int64_t itemsize,
                          const std::shared_ptr<Sharding>& source, const std::shared_ptr<Sharding>& destination) {
  const Dims shape = dims(global_shape);
  const std::vector<int64_t> after = device_ids(*destination);
  const std::vector<int64_t> bytes = ingress_bytes(source->domains(shape, kPlanReshard), device_ids(*source),
                                                   destination->domains(shape, kPlanReshard), after, itemsize);
  return py::make_tuple(ndarray_of(after), ndarray_of(bytes));
}

py::list reshard_copies(const std::vector<int64_t>& global_shape, int64_t itemsize,
                        const std::shared_ptr<Sharding>& source, const std::shared_ptr<Sharding>& destination,
                        const ClusterOrNone& given) {
  const Dims shape = dims(global_shape);
  const ClusterRef handle = cluster_for(given.value_or(nullptr), *source, *destination);
  const PlacedCopies placed =
      run_blocking([&] { return placed_copies(*source, *destination, shape, itemsize, handle.get(), kMostCopies); });
  py::list result;
  placed.direct.plan.for_each_copy([&](const ReshardCopy& copy) {
    py::tuple box(copy.box.rank());
    for (int64_t d = 0; d < copy.box.rank(); ++d) {
      box[static_cast<size_t>(d)] = py::make_tuple(copy.box.origin[d], copy.box.origin[d] + copy.box.shape[d]);
    }
    result.append(py::make_tuple(placed.source.places[copy.source].device,
                                 placed.destination.places[copy.destination].device, box, copy.bytes));
  });
  return result;
}

py::dict collective_dict(const std::string& op, double bytes, const std::shared_ptr<Cluster>& cluster,
                         const std::vector<std::string>& axes, std::vector<std::vector<int64_t>> groups,
                         const PermutePairs& pairs) {
  const PlannedCollective planned =
      run_blocking([&] { return plan_collective(op, bytes, *cluster, axes, std::move(groups), pairs); });
  py::list costs;
  for (const TransferCost& cost : planned.costs) {
    costs.append(py::make_tuple(estimate_arguments(cost), cost.is_bound));
  }
  const CollectiveBound& bound = planned.bound;
  py::dict result;
  result["devices"] = planned.devices;
  result["groups"] = planned.groups;
  result["costs"] = std::move(costs);
  result["bytes"] = py::make_tuple(planned.bytes.received, planned.bytes.peak);
  result["lower_bound"] = py::make_tuple(bound.device_bytes, bound.chip_bytes, bound.slice_bytes, planned.bound_seconds,
                                         planned.why_no_bound_seconds);
  return result;
}

}  // namespace

void bind_reshard(py::module_& module) {
  module.def("plan_reshard", &reshard_dict, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cluster"), py::arg("memory_limit"), py::arg("strategy"),
             "Returns a dict of the plan from one sharding to another, and of the plan by the other strategy.");
  module.def("reshard_ingress", &reshard_ingress, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"),
             R"(Returns two int64 ndarrays, with one element for each device of the destination.

They hold the id of the device, and the number of bytes that it must receive at least.
)");
  module.def("reshard_copies", &reshard_copies, py::arg("shape"), py::arg("itemsize"), py::arg("source"),
             py::arg("destination"), py::arg("cluster"),
             "Returns (source device, destination device, (begin, end) of each dimension, bytes) of every "
             "direct copy.");
  module.def("plan_collective", &collective_dict, py::arg("op"), py::arg("bytes"), py::arg("cluster"), py::arg("axes"),
             py::arg("groups"), py::arg("pairs"),
             R"(Returns a dict of the algorithms for one collective, fastest first, and of its lower bound.

`groups` lists the ids of the devices in each group; if it is empty, the groups along `axes` of the cluster are used.
)");
  module.def(
      "collective_bytes",
      [](const std::string& op, double bytes, int64_t devices) {
        const CollectiveBytes found = collective_bytes(op, bytes, devices);
        return py::make_tuple(found.received, found.peak);
      },
      py::arg("op"), py::arg("bytes"), py::arg("devices"),
      "Returns (bytes that a device receives, bytes of its input and result) of a collective.");
  // Python's handles are of mutable clusters; none of their methods changes one.
  module.def(
      "cluster_of_device",
      [](const Device& device) { return std::const_pointer_cast<Cluster>(cluster_of(device.client())); },
      py::arg("device"), "Returns the Cluster that a device belongs to, or None.");
  module.def(
      "network_of_device", [](const Device& device) { return std::const_pointer_cast<Cluster>(network_of(device)); },
      py::arg("device"),
      R"(Returns a Cluster that describes the links between the devices of a device's client, or None if they are unknown.

It is the Cluster that the device belongs to, or describes the links of GPUs in the catalogue.
)");
}

}  // namespace artifex_devices::planner::bindings
