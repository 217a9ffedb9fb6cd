// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "artifex_devices/cluster/cluster_machine.h"
#include "artifex_devices/cluster/mesh_explanation.h"
#include "artifex_devices/cluster/mesh_orders.h"
#include "artifex_devices/device/cluster_client.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "numpy_bridge.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

/// Texts of Python devices; the callbacks take the GIL themselves.
MeshDeviceTexts device_texts(const py::list& devices, const py::function& text) {
  return {
      .device =
          [devices, text](int64_t at) {
            return with_gil([&] { return text(devices[static_cast<size_t>(at)]).cast<std::string>(); });
          },
      .device_kind =
          [devices](int64_t at) {
            return with_gil(
                [&] { return py::str(devices[static_cast<size_t>(at)].attr("device_kind")).cast<std::string>(); });
          },
      .list =
          [devices](const std::vector<int64_t>& positions) {
            return with_gil([&] {
              py::list chosen;
              for (const int64_t at : positions) chosen.append(devices[static_cast<size_t>(at)]);
              return py::repr(chosen).cast<std::string>();
            });
          },
  };
}

/// Fills in the places of devices of one cluster; false for other devices.
bool add_cluster_devices(const py::list& devices, MeshDevices* result) {
  const Client* client = nullptr;
  for (const py::handle item : devices) {
    if (!py::isinstance<Device>(item)) return false;
    const auto& device = item.cast<const Device&>();
    if (client == nullptr) {
      client = &device.client();
      const auto* machine = dynamic_cast<const ClusterMachine*>(&client->machine());
      if (machine == nullptr) return false;
      result->cluster = machine->cluster();
    }
    if (client != &device.client()) return false;
    const ClusterPlace place = result->cluster->place_of(device.id().number());
    const auto& [x, y, z] = place.coords;
    result->devices.push_back({device.id().number(), {x, y, z}, place.core_on_chip, place.slice});
  }
  if (result->cluster->inside().kind != NetworkKind::kTorus) result->without_coords = 0;
  return true;
}

py::object order_to_python(const std::vector<int64_t>& order) {
  return int64_ndarray({static_cast<int64_t>(order.size())}, order);
}

py::list axes_to_python(const std::vector<AxisExplanation>& axes) {
  return make_list(axes, [](const AxisExplanation& each) {
    return py::make_tuple(each.size, each.links, each.slices, each.bandwidth, each.hops, each.seconds);
  });
}

py::tuple explanation_to_python(const MeshDevices& devices, const Dims& shape, const std::vector<double>& traffic) {
  const auto found = without_gil([&] { return explain_mesh(devices, shape, traffic); });
  std::vector<int64_t> places;
  for (const MeshDevice& each : found.places) {
    places.insert(places.end(),
                  {each.id, each.slice_index, each.coords[0], each.coords[1], each.coords[2], each.core_on_chip});
  }
  return py::make_tuple(found.title, found.source, found.network, py::tuple(py::cast(found.wraps)),
                        axes_to_python(found.axes), axes_to_python(found.axes_by_id),
                        int64_ndarray({devices.size(), 6}, places));
}

}  // namespace

void bind_mesh_orders(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<MeshDevices>(internal, "MeshDevices", "Devices to lay a mesh over.")
      .def(
          py::init([](const py::list& devices, const py::function& text, std::string platform, std::string device_kind,
                      const std::vector<std::array<int64_t, 6>>& rows, int64_t without_coords) {
            auto result = std::unique_ptr<MeshDevices>(new MeshDevices{
                std::move(platform), std::move(device_kind), {}, without_coords, nullptr, device_texts(devices, text)});
            for (const auto& [id, x, y, z, core, slice] : rows) {
              result->devices.push_back({id, {x, y, z}, core, slice});
            }
            return result;
          }),
          py::arg("devices"), py::arg("text"), py::arg("platform"), py::arg("device_kind"), py::arg("rows"),
          py::arg("without_coords"),
          R"(Creates the object.

`rows` has (id, x, y, z, core_on_chip, slice_index) of each device; `text` formats a device for error messages.
)")
      .def_static(
          "of_cluster",
          [](const py::list& devices, const py::function& text) -> std::optional<MeshDevices> {
            MeshDevices result;
            if (!add_cluster_devices(devices, &result)) return std::nullopt;
            result.platform = result.cluster->chip().platform;
            result.device_kind = result.cluster->chip().device_kind;
            result.texts = device_texts(devices, text);
            return result;
          },
          py::arg("devices"), py::arg("text"),
          "Creates the object for the devices of one cluster; returns None for other devices.")
      .def_readonly("platform", &MeshDevices::platform, "Platform of the last device.")
      .def(
          "jax_order",
          [](const MeshDevices& self, const std::vector<int64_t>& shape, bool contiguous, bool split) {
            const auto order = without_gil([&] { return jax_mesh_order(self, Dims(shape), contiguous, split); });
            return order_to_python(order);
          },
          py::arg("shape"), py::arg("contiguous"), py::arg("split"),
          "Returns the position of the device at each place of the mesh, by JAX's rule, as an int64 ndarray.")
      .def(
          "exact_order",
          [](const MeshDevices& self, const std::vector<int64_t>& shape, const std::vector<double>& traffic,
             bool split) {
            const auto order = without_gil([&] { return exact_mesh_order(self, Dims(shape), traffic, split); });
            return order_to_python(order);
          },
          py::arg("shape"), py::arg("traffic"), py::arg("split"),
          "Returns the position of the device at each place of the mesh with the least modelled time, as an "
          "int64 ndarray.")
      .def(
          "explain",
          [](const MeshDevices& self, const std::vector<int64_t>& shape, const std::vector<double>& traffic) {
            return explanation_to_python(self, Dims(shape), traffic);
          },
          py::arg("shape"), py::arg("traffic"),
          "Returns (title, source, network, wraps, axes, axes by id, places) for the devices in a mesh of "
          "`shape`.");
  internal.def(
      "hybrid_mesh_order",
      [](const std::vector<std::vector<int64_t>>& granule_orders, const std::vector<int64_t>& inside,
         const std::vector<int64_t>& outside) {
        return order_to_python(hybrid_mesh_order(granule_orders, Dims(inside), Dims(outside)));
      },
      py::arg("granule_orders"), py::arg("inside"), py::arg("outside"),
      "Returns the position of the device at each place of a mesh over several granules, as an int64 "
      "ndarray.");
}

}  // namespace artifex_devices::bindings
