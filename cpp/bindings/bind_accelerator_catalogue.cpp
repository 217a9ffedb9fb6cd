// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "artifex_devices/cluster/accelerator_catalogue.h"
#include "bindings.h"
#include "class_members.h"
#include "pybind.h"

namespace artifex_devices::bindings {
namespace {

template <class Names>
py::tuple texts(const Names& names) {
  py::list result;
  for (const std::string_view name : names) {
    if (!name.empty()) result.append(py::str(name.data(), name.size()));
  }
  return py::tuple(result);
}

py::object shape(const std::array<int, 3>& sizes) {
  py::list result;
  for (const int size : sizes) {
    if (size > 0) result.append(size);
  }
  return result.empty() ? py::object(py::none()) : py::object(py::tuple(result));
}

py::dict links_of(const CatalogueLinks& links) {
  py::dict result;
  result["kind"] = links.kind;
  result["links"] = links.links;
  result["torus_dims"] = links.torus_dims;
  result["one_way"] = links.one_way;
  result["nominal_one_way"] = links.nominal_one_way;
  result["pod"] = shape(links.pod);
  result["pod_note"] = links.pod_note;
  result["wrap"] = links.wrap;
  result["wrap_note"] = links.wrap_note;
  result["domain_chips"] = links.domain_chips;
  result["domain_note"] = links.domain_note;
  result["switches"] = links.switches;
  return result;
}

py::dict row_of(const Accelerator& row) {
  py::dict peaks;
  for (int i = 0; i < kMatmulFormatCount; ++i) {
    const auto format = static_cast<MatmulFormat>(i);
    if (const auto peak = row.peak(format)) peaks[py::str(std::string(to_string(format)))] = *peak;
  }
  py::dict result;
  result["name"] = row.name;
  result["hardware_type"] = row.hardware_type;
  result["platform"] = row.platform;
  result["device_kinds"] = texts(row.device_kinds);
  result["pci_ids"] = texts(row.pci_ids);
  result["peak_flops"] = peaks;
  result["memory_bytes"] = row.memory_bytes;
  result["memory_bandwidth"] = row.memory_bandwidth;
  result["cores_per_chip"] = row.cores_per_chip;
  result["devices_per_chip"] = row.devices_per_chip;
  // Of the youngest TPUs only the chip is known.
  result["links"] = row.links.kind.empty() ? py::object(py::none()) : py::object(links_of(row.links));
  result["chips_per_host"] = row.chips_per_host;
  result["host_shape"] = shape(row.host_shape);
  result["pcie_one_way"] = row.pcie_one_way;
  result["network_per_chip"] = row.network_per_chip;
  result["sources"] = texts(row.sources);
  result["link_sources"] = texts(row.link_sources);
  result["pci_source"] = row.pci_source;
  result["note"] = row.note;
  return result;
}

std::optional<std::string> name_of(const Accelerator* row) {
  return row ? std::optional(std::string(row->name)) : std::nullopt;
}

}  // namespace

void bind_accelerator_catalogue(py::module_& module) {
  module.def(
      "accelerator_catalogue",
      [] { return make_list(accelerator_catalogue(), [](const Accelerator& row) { return row_of(row); }); },
      "Returns the accelerators as dicts, per chip; bytes, bytes/s, dense FLOP/s. Unpublished values are missing or None.");
  module.def(
      "catalogue_sources",
      [] {
        return make_list(catalogue_sources(),
                         [](const CatalogueSource& each) { return py::make_tuple(each.id, each.title, each.address); });
      },
      "Returns (id, title, address) of the catalogue's sources.");
  module.def(
      "find_accelerator",
      [](const std::string& by, const std::string& text) {
        if (by == "name") return name_of(find_accelerator_by_name(text));
        if (by == "kind") return name_of(find_accelerator_by_kind(text));
        if (by == "pci") return name_of(find_accelerator_by_pci(text));
        return name_of(find_accelerator_of_type(text));
      },
      py::arg("by"), py::arg("text"),
      R"(Returns the name of an accelerator in the catalogue, or None.

Args:
    by: What `text` is: "name", "kind" (the device_kind), "pci" (such as "10de:2330") or "type" (a HardwareType's value).
    text: The text to look up.
)");
}

}  // namespace artifex_devices::bindings
