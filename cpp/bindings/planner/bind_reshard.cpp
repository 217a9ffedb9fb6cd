// SPDX-License-Identifier: Apache-2.0
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <utility>

#include "artifex_devices/partition/reshard_check.h"
#include "artifex_devices/sharding/mesh.h"
#include "artifex_planner/collective/plan.h"
#include "artifex_planner/cost/position_ranges.h"
#include "artifex_planner/reshard/plan.h"
#include "bind_planner.h"
#include "struct_caster.h"

namespace artifex_devices::planner::bindings {
namespace {

namespace py = pybind11;

py::array_t<int64_t> ndarray_of(const std::vector<int64_t>& values) {
  return py::array_t<int64_t>(static_cast<py::ssize_t>(values.size()), values.data());
}

/// Counts the bytes of each device when it is called: (ids, bytes).
py::cpp_function counter(std::function<std::vector<int64_t>()> bytes_in, const std::shared_ptr<Sharding>& destination) {
  return [bytes_in = std::move(bytes_in), destination] {
    return py::make_tuple(ndarray_of(device_ids(*destination)), ndarray_of(run_blocking(bytes_in)));
  };
}

py::dict reshard_dict(const std::vector<int64_t>& global_shape, int64_t itemsize,
                      const std::shared_ptr<Sharding>& source, const std::shared_ptr<Sharding>& destination,
                      const ClusterOrNone& cluster, std::optional<int64_t> memory_limit,
                      const std::optional<std::string>& strategy, const std::optional<Efficiency>& efficiency) {
  const Dims shape = dims(global_shape);
  ReshardRequest request{cluster.value_or(nullptr), memory_limit, {}, efficiency};
  if (strategy) request.strategy = *strategy == "copies" ? ReshardStrategy::kCopies : ReshardStrategy::kCollectives;
  PlannedReshard planned = run_blocking([&] { return plan_reshard(shape, itemsize, *source, *destination, request); });
  py::dict result = to_python(planned);
  result["plan"]["count_bytes"] = counter(std::move(planned.plan.bytes_in), destination);
  if (planned.other) result["other"]["count_bytes"] = counter(std::move(planned.other->bytes_in), destination);
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
    result.append(py::make_tuple(placed.source.places[copy.source].device.number(),
                                 placed.destination.places[copy.destination].device.number(), box, copy.bytes));
  });
  return result;
}

}  // namespace

void bind_reshard(py::module_& module) {
  module.def("plan_reshard", &reshard_dict, py::arg("shape"), py::arg("itemsize"), py::arg("source").none(false),
             py::arg("destination").none(false), py::arg("cluster"), py::arg("memory_limit"), py::arg("strategy"),
             py::arg("efficiency"),
             "Returns a dict of the plan from one sharding to another, and of the plan by the other strategy.");
  module.def("reshard_ingress", &reshard_ingress, py::arg("shape"), py::arg("itemsize"), py::arg("source").none(false),
             py::arg("destination").none(false),
             R"(Returns two int64 ndarrays, with one element for each device of the destination.

They hold the id of the device, and the number of bytes that it must receive at least.
)");
  module.def("reshard_copies", &reshard_copies, py::arg("shape"), py::arg("itemsize"), py::arg("source").none(false),
             py::arg("destination").none(false), py::arg("cluster"),
             "Returns (source device, destination device, (begin, end) of each dimension, bytes) of every "
             "direct copy.");
  module.def(
      "plan_collective",
      [](const std::string& op, double bytes, const std::shared_ptr<Cluster>& cluster,
         const std::vector<std::string>& axes, std::vector<std::vector<int64_t>> groups, const PermutePairs& pairs,
         const Efficiency& efficiency) {
        return run_blocking(
            [&] { return plan_collective(op, bytes, *cluster, axes, std::move(groups), pairs, efficiency); });
      },
      py::arg("op"), py::arg("bytes"), py::arg("cluster").none(false), py::arg("axes"), py::arg("groups"),
      py::arg("pairs"), py::arg("efficiency"),
      R"(Returns a dict of the algorithms for one collective, fastest first, and of its lower bound.

`groups` lists the ids of the devices in each group; if it is empty, the groups along `axes` of the cluster are used.
)");
  module.def(
      "mesh_groups",
      [](const Mesh& mesh, const std::vector<size_t>& axes) {
        const Dims& sizes = mesh.abstract_mesh().axis_sizes();
        const std::vector<PositionRange> all = mesh_ranges({sizes.begin(), sizes.end()});
        std::vector<PositionRange> ranges;
        for (const size_t axis : axes) ranges.push_back(all.at(axis));
        std::vector<int64_t> devices;
        for (int64_t i = 0; i < mesh.size(); ++i) {
          devices.push_back((*mesh.devices())[Position(i)]->id().number());
        }
        return devices_of(groups_along(ranges, mesh.size()), devices);
      },
      py::arg("mesh"), py::arg("axes"),
      "Returns the ids of the devices of each group along some axes of a mesh, given by number.");
  module.def(
      "collective_bytes",
      [](const std::string& op, double bytes, int64_t devices) { return collective_bytes(op, bytes, devices); },
      py::arg("op"), py::arg("bytes"), py::arg("devices"),
      "Returns a dict of the bytes that a device receives, and of the bytes of its input and result.");
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
