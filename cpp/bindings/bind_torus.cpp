// SPDX-License-Identifier: Apache-2.0
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "artifex_devices/cluster/accelerator_catalogue.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/cluster/torus_assignment.h"
#include "artifex_devices/cluster/torus_rates.h"
#include "artifex_devices/device/cluster_client.h"
#include "bindings.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

py::tuple attempt_to_python(AssignmentAttempt attempt) {
  if (attempt.found) return py::make_tuple(std::move(attempt.found->factors), py::none());
  return py::make_tuple(py::none(), py::make_tuple(attempt.stopped.logical_axis, attempt.stopped.remaining));
}

py::dict rate_to_python(const AxisRate& rate) {
  py::list parts;
  for (const AxisPart& part : rate.parts) {
    py::dict each;
    each["axis"] = part.physical_axis;
    each["count"] = part.count;
    each["stride"] = part.stride;
    each["is_ring"] = part.is_ring;
    each["bandwidth"] = part.bandwidth;
    parts.append(each);
  }
  py::dict result;
  result["size"] = rate.size;
  result["parts"] = parts;
  result["link_load"] = rate.link_load;
  result["bandwidth"] = rate.bandwidth;
  result["hops"] = rate.hops;
  return result;
}

// (devices, 7): id, process_index, x, y, z, core_on_chip, slice_index; None unless all are of one cluster.
py::object places_of(const py::sequence& devices) {
  const Client* client = nullptr;
  std::vector<int64_t> values;
  values.reserve(7 * devices.size());
  for (const py::handle item : devices) {
    if (!py::isinstance<Device>(item)) return py::none();
    const auto& device = item.cast<const Device&>();
    if (client == nullptr) client = &device.client();
    const Cluster* cluster = cluster_of(device.client());
    if (client != &device.client() || cluster == nullptr) return py::none();
    const ClusterPlace at = cluster->place_of(device.id());
    for (const int64_t value : {device.id(), at.process, int64_t{at.coords[0]}, int64_t{at.coords[1]},
                                int64_t{at.coords[2]}, int64_t{at.core_on_chip}, at.slice}) {
      values.push_back(value);
    }
  }
  return int64_ndarray({static_cast<int64_t>(devices.size()), 7}, values);
}

}  // namespace

void bind_torus(py::module_& module) {
  module.def(
      "_assign_axes",
      [](const std::vector<int64_t>& dims, const std::vector<int64_t>& mesh, bool split) {
        return attempt_to_python(split ? assign_split_axes(dims, mesh) : assign_whole_axes(dims, mesh));
      },
      py::arg("dims"), py::arg("mesh"), py::arg("split"),
      "(factors, None) or (None, (logical axis, remaining)) by JAX's greedy rule; products of dims and mesh are "
      "equal.");
  module.def(
      "_assign_axes_exactly",
      [](const std::vector<int64_t>& dims, const std::vector<bool>& wraps, double link_bandwidth, double hop_latency,
         const std::vector<int64_t>& mesh, const std::vector<double>& traffic,
         bool split) -> std::optional<std::vector<std::vector<int64_t>>> {
        const ReleaseGil release;
        auto found = assign_exactly({dims, wraps, link_bandwidth, hop_latency}, mesh, traffic, split);
        if (!found) return std::nullopt;
        return std::move(found->factors);
      },
      py::arg("dims"), py::arg("wraps"), py::arg("link_bandwidth"), py::arg("hop_latency"), py::arg("mesh"),
      py::arg("traffic"), py::arg("split"), "The factors of the assignment with the least modelled time, or None.");
  module.def(
      "_torus_order",
      [](std::vector<std::vector<int64_t>> factors) {
        std::vector<int64_t> order;
        {
          const ReleaseGil release;
          order = order_of({std::move(factors)});
        }
        return int64_ndarray({static_cast<int64_t>(order.size())}, order);
      },
      py::arg("factors"), "For each place of the mesh the place in the torus, both row-major: int64 ndarray.");
  module.def(
      "_torus_rates",
      [](const std::vector<int64_t>& dims, const std::vector<bool>& wraps, double link_bandwidth, double hop_latency,
         const std::vector<int64_t>& mesh, const std::vector<int64_t>& order, const std::vector<double>& traffic) {
        const Torus torus{dims, wraps, link_bandwidth, hop_latency};
        std::vector<AxisRate> rates;
        {
          const ReleaseGil release;
          rates = rates_of(torus, mesh, order);
        }
        py::list result;
        for (const AxisRate& rate : rates) result.append(rate_to_python(rate));
        return py::make_tuple(result, seconds_of(torus, rates, traffic));
      },
      py::arg("dims"), py::arg("wraps"), py::arg("link_bandwidth"), py::arg("hop_latency"), py::arg("mesh"),
      py::arg("order"), py::arg("traffic"),
      "(what each axis of a mesh can do, modelled seconds) for chips in any order.");
  module.def(
      "_wraps_by_rule",
      [](const std::string& device_kind, const std::vector<int>& dims) {
        const Accelerator* row = find_accelerator_by_kind(device_kind);
        return row ? wraps_by_rule(*row, dims) : std::vector<bool>(dims.size(), false);
      },
      py::arg("device_kind"), py::arg("dims"), "Which axes of a torus of these chips wrap, by the catalogue's rule.");
  module.def("_device_places", &places_of, py::arg("devices"),
             "(n, 7) of id, process_index, x, y, z, core_on_chip, slice_index; None unless all are of one cluster.");
}

}  // namespace artifex_devices::bindings
