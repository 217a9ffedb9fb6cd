// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include <algorithm>
#include <unordered_map>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_file.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/cluster/cluster_text.h"
#include "artifex_devices/cluster/machine_node.h"
#include "artifex_devices/device/cluster_client.h"
#include "bindings.h"
#include "class_members.h"
#include "cpython_calls.h"
#include "pybind.h"
#include "python_modules.h"
#include "world.h"

namespace artifex_devices::bindings {
namespace {

using Handle = std::shared_ptr<Cluster>;  // pybind11 holds no pointers to const

Handle handle_to(ClusterRef cluster) { return std::const_pointer_cast<Cluster>(std::move(cluster)); }

// Numbers are passed as pairs (value, source), unknown ones as None.
using FigureTuple = std::optional<std::pair<double, std::string>>;

FigureTuple tuple_of(const std::optional<SourcedNumber>& figure) {
  return figure ? FigureTuple({figure->value, figure->source}) : std::nullopt;
}

std::optional<SourcedNumber> figure_from(const FigureTuple& tuple) {
  return tuple ? std::optional(SourcedNumber{tuple->first, tuple->second}) : std::nullopt;
}

py::dict dict_of_chip(const ClusterChip& chip) {
  py::dict peaks;
  for (int i = 0; i < kMatmulFormatCount; ++i) {
    const auto format = static_cast<MatmulFormat>(i);
    if (chip.peak(format)) peaks[py::str(std::string(to_string(format)))] = tuple_of(chip.peak(format));
  }
  py::dict result;
  result["chip_name"] = chip.name;
  result["platform"] = chip.platform;
  result["device_kind"] = chip.device_kind;
  result["devices_per_chip"] = chip.devices_per_chip;
  result["peak_flops"] = peaks;
  result["memory_bytes"] = tuple_of(chip.memory_bytes);
  result["memory_bandwidth"] = tuple_of(chip.memory_bandwidth);
  result["host_bandwidth"] = tuple_of(chip.host_bandwidth);
  return result;
}

py::dict dict_of(const ClusterParts& parts) {
  py::dict result = dict_of_chip(parts.chip);
  result["name"] = parts.name;
  result["network"] = std::string(to_string(parts.inside.kind));
  result["link_kind"] = parts.inside.link_kind;
  result["dims"] = py::tuple(py::cast(parts.inside.dims));
  result["wraps"] = py::tuple(py::cast(parts.inside.wraps));
  result["bandwidth"] = tuple_of(parts.inside.bandwidth);
  result["latency"] = tuple_of(parts.inside.latency);
  result["slices"] = parts.slices;
  result["network_bandwidth"] = tuple_of(parts.between.bandwidth);
  result["network_latency"] = tuple_of(parts.between.latency);
  result["host_shape"] = py::tuple(py::cast(parts.host_shape));
  result["host_source"] = parts.host_source;
  result["host_memory_bytes"] = tuple_of(parts.host_memory);
  result["notes"] = py::tuple(py::cast(parts.notes));
  return result;
}

ClusterParts parts_from(const py::dict& dict) {
  ClusterParts parts;
  parts.name = dict["name"].cast<std::string>();
  parts.chip.name = dict["chip_name"].cast<std::string>();
  parts.chip.platform = dict["platform"].cast<std::string>();
  parts.chip.device_kind = dict["device_kind"].cast<std::string>();
  parts.chip.devices_per_chip = dict["devices_per_chip"].cast<int>();
  for (const auto& [name, figure] : dict["peak_flops"].cast<std::unordered_map<std::string, FigureTuple>>()) {
    parts.chip.peak_flops[static_cast<size_t>(peak_format_from_name(name))] = figure_from(figure);
  }
  const auto figure = [&](const char* key) { return figure_from(dict[key].cast<FigureTuple>()); };
  parts.chip.memory_bytes = figure("memory_bytes");
  parts.chip.memory_bandwidth = figure("memory_bandwidth");
  parts.chip.host_bandwidth = figure("host_bandwidth");
  parts.inside.kind = network_kind_from_name(dict["network"].cast<std::string>());
  parts.inside.link_kind = dict["link_kind"].cast<std::string>();
  parts.inside.dims = dict["dims"].cast<std::vector<int>>();
  parts.inside.wraps = dict["wraps"].cast<std::vector<bool>>();
  parts.inside.bandwidth = figure("bandwidth");
  parts.inside.latency = figure("latency");
  parts.slices = dict["slices"].cast<int64_t>();
  parts.between.bandwidth = figure("network_bandwidth");
  parts.between.latency = figure("network_latency");
  parts.host_shape = dict["host_shape"].cast<std::vector<int>>();
  parts.host_source = dict["host_source"].cast<std::string>();
  if (dict.contains("host_memory_bytes")) {
    parts.host_memory = figure("host_memory_bytes");
  } else {  // a pickle of the first clusters of version 0.1.0
    int64_t chips = 1;
    for (const int size : parts.host_shape) chips *= size;
    parts.host_memory = host_memory_of(parts.chip.name, chips);
  }
  parts.notes = dict["notes"].cast<std::vector<std::string>>();
  return parts;
}

/// Sets `value` if the table has the key.
template <class T>
void read_entry(const py::dict& table, const char* key, std::optional<T>* value) {
  if (table.contains(key)) *value = table[key].cast<T>();
}

Handle cluster_from_tables(const py::dict& content, const std::string& source) {
  const auto table = [&](const char* name) {
    return content.contains(name) ? content[name].cast<py::dict>() : py::dict();
  };
  ClusterFile file;
  read_entry(content, "name", &file.name);
  read_entry(content, "slices", &file.slices);
  const py::dict chip = table("chip");
  read_entry(chip, "name", &file.chip.name);
  read_entry(chip, "platform", &file.chip.platform);
  read_entry(chip, "device_kind", &file.chip.device_kind);
  read_entry(chip, "devices_per_chip", &file.chip.devices_per_chip);
  read_entry(chip, "memory_bytes", &file.chip.memory_bytes);
  read_entry(chip, "memory_bandwidth", &file.chip.memory_bandwidth);
  if (chip.contains("peak_flops")) file.chip.peak_flops = chip["peak_flops"].cast<std::map<std::string, double>>();
  const py::dict slice = table("slice");
  read_entry(slice, "kind", &file.slice.kind);
  read_entry(slice, "link_kind", &file.slice.link_kind);
  read_entry(slice, "chips", &file.slice.chips);
  read_entry(slice, "dims", &file.slice.dims);
  read_entry(slice, "wraps", &file.slice.wraps);
  read_entry(slice, "bandwidth", &file.slice.bandwidth);
  read_entry(slice, "latency", &file.slice.latency);
  const py::dict host = table("host");
  read_entry(host, "chips", &file.host.chips);
  read_entry(host, "nics", &file.host.nics);
  read_entry(host, "shape", &file.host.shape);
  read_entry(host, "bandwidth", &file.host.bandwidth);
  read_entry(host, "nic_bandwidth", &file.host.nic_bandwidth);
  read_entry(host, "memory_bytes", &file.host.memory_bytes);
  const py::dict network = table("network");
  read_entry(network, "bandwidth", &file.network_bandwidth);
  read_entry(network, "latency", &file.network_latency);
  return handle_to(Cluster::make(cluster_parts(file, source)));
}

py::dict dict_of_node(const std::shared_ptr<Machine>& machine, const py::list& accelerators,
                      const std::string& source) {
  const auto text = [](const py::handle& value) { return value.is_none() ? "" : value.cast<std::string>(); };
  std::vector<MachineChip> chips;
  for (const py::handle each : accelerators) {
    chips.push_back({text(each.attr("catalogue_name")), text(each.attr("name")),
                     each.attr("device_type").attr("value").cast<std::string>(),
                     each.attr("memory_bytes").cast<std::optional<int64_t>>(),
                     each.attr("link_bytes_per_s").cast<std::optional<double>>(), text(each.attr("pci_address"))});
  }
  return dict_of(chips.empty() ? cpu_node(*machine, source) : accelerator_node(chips, *machine, source));
}

std::string cluster_repr(const Cluster& self) {
  return fmt::format("<Cluster {}: {} {} device{}>", self.name(), self.device_count(), self.chip().platform,
                     self.device_count() == 1 ? "" : "s");
}

}  // namespace

void bind_cluster(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<Cluster, Handle>(module, "Cluster",
                              R"(An immutable description of chips to plan with, whether or not you have them.

Create one by `artifex_devices.cluster`: `tpu`, `dgx`, `mi300x`, `from_toml`, `from_xml` or `this_machine`. Bandwidths are
bytes/s in one direction.

Example:
    >>> from artifex_devices import cluster
    >>> pod = cluster.tpu("v5p", (4, 4, 8), slices=2)
    >>> pod
    <Cluster 2 x TPU v5p 4x4x8: 256 tpu devices>
    >>> pod.devices()[130]
    TpuDevice(id=130, process_index=33, coords=(2,0,0), core_on_chip=0)
)")
      .def_property_readonly("name", by_reference(&Cluster::name), "Name of the cluster.")
      .def_property_readonly(
          "platform", [](const Cluster& self) { return self.chip().platform; }, "\"tpu\", \"gpu\" or \"cpu\".")
      .def_property_readonly(
          "device_kind", [](const Cluster& self) { return self.chip().device_kind; }, "Name that its devices report.")
      .def_property_readonly(
          "network", [](const Cluster& self) { return std::string(to_string(self.inside().kind)); },
          "Network between the chips of a slice: \"torus\", \"switch\" or \"full mesh\".")
      .def_property_readonly(
          "dims", [](const Cluster& self) { return py::tuple(py::cast(self.inside().dims)); },
          "Number of chips of a slice along each axis of the torus; a single number without a torus.")
      .def_property_readonly(
          "wraps", [](const Cluster& self) { return py::tuple(py::cast(self.inside().wraps)); },
          "Whether the ends of each axis of the torus are joined; () without a torus.")
      .def_property_readonly("slices", by_reference(&Cluster::slices), "Number of slices or nodes.")
      .def_property_readonly("chip_count", by_reference(&Cluster::chip_count), "Number of chips.")
      .def_property_readonly("process_count", by_reference(&Cluster::process_count),
                             "Number of hosts, one process each.")
      .def_property_readonly("device_count", by_reference(&Cluster::device_count), "Number of devices.")
      .def_property_readonly(
          "parts", [](const Cluster& self) { return dict_of(self.parts()); },
          R"(Parts of the cluster: dict. Numbers are (value, source), or None if not known.

Sources are ids of the catalogue ("S5"), "measured", "model", "given", or the path of a file.

Example:
    >>> from artifex_devices import cluster
    >>> cluster.tpu("v5e", (4, 4)).parts["bandwidth"]
    (45000000000.0, 'S2 S5')
)")
      .def(
          "devices", [](const Handle& self) { return py::list(devices_of(cluster_client(self))); },
          R"(Returns a new list of devices to plan with, in order of id. Placing data on them raises RuntimeError.

A device has `coords` and `core_on_chip` (in a torus), `slice_index`, `process_index` (of its host), `device_kind`,
`platform` and `memory_bytes`. Ids count slice by slice, in a slice chip by chip with x fastest, on a chip core by core. As
long as one of them is alive, further calls return the same devices.
)")
      .def(
          "describe",
          [](const py::object& self) -> py::str { return call_python(python_modules::kCluster, "describe", self); },
          "Returns a text with one line for each part of the cluster, with the source of each number.")
      .def("_repr_html_",
           [](const py::object& self) { return call_python(python_modules::kHtml, "cluster_html", self); })
      .def("__eq__", &equals<Cluster>)
      .def("__hash__", [](const Cluster& self) { return py::hash(py::str(cluster_repr(self))); })
      .def("__reduce__", [](const Cluster& self) -> py::tuple { return pickled_by("cluster", dict_of(self.parts())); })
      .def("__repr__", &cluster_repr);

  internal.def(
      "make_cluster", [](const py::dict& parts) { return handle_to(Cluster::make(parts_from(parts))); },
      py::arg("parts"), "Creates a Cluster from a dict such as `Cluster.parts`.");
  internal.def(
      "tpu_cluster",
      [](const std::string& generation, const std::vector<int>& shape, int64_t slices, const FigureTuple& host_memory) {
        return handle_to(tpu_cluster(generation, shape, slices, figure_from(host_memory)));
      },
      py::arg("generation"), py::arg("shape"), py::arg("slices"), py::arg("host_memory"));
  internal.def(
      "gpu_cluster",
      [](const std::string& gpu, int64_t nodes, std::optional<int> chips_per_node, const FigureTuple& network,
         const FigureTuple& host_memory) {
        return handle_to(gpu_cluster(gpu, nodes, {chips_per_node, figure_from(network), figure_from(host_memory)}));
      },
      py::arg("gpu"), py::arg("nodes"), py::arg("chips_per_node"), py::arg("network_bandwidth"),
      py::arg("host_memory"));
  internal.def(
      "cluster_from_text", [](const std::string& text) { return handle_to(cluster_from_text(text)); }, py::arg("text"),
      "Describes a cluster of the catalogue as people write it.");
  internal.def("cluster_from_tables", &cluster_from_tables, py::arg("content"), py::arg("source"),
               "Creates a Cluster from the tables of a cluster file, whose keys and types the caller has checked.");
  internal.def("machine_node", &dict_of_node, py::arg("machine"), py::arg("accelerators"), py::arg("source"),
               "Returns the parts of a node with the machine's accelerators, or its CPU domains if it has no "
               "accelerators.");
  internal.attr("JOINED_BY_PCI") = kJoinedByPci;
  internal.def(
      "client_of_cluster", [](const Handle& cluster) { return cluster_client(cluster); }, py::arg("cluster"),
      "Returns the client of a cluster's devices.");
}

}  // namespace artifex_devices::bindings
