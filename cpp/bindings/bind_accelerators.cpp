// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include "artifex_devices/cluster/capabilities.h"
#include "bindings.h"
#include "class_members.h"
#include "gil.h"
#include "pybind.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

py::object capability_text(const std::optional<ComputeCapability>& capability) {
  if (!capability) return py::none();
  return py::str(fmt::format("{}.{}", capability->major, capability->minor));
}

py::list names(const std::vector<std::string>& texts) {
  py::list result;
  for (const std::string& text : texts) result.append(text_or_none(text));
  return result;
}

py::list links_to_python(const std::vector<NvLink>& links) {
  return make_list(links, [](const NvLink& link) {
    return py::make_tuple(link.link, link.is_active, text_or_none(link.peer_kind), text_or_none(link.peer_pci_address));
  });
}

py::dict accelerator_to_python(const FoundAccelerator& accelerator) {
  const PciAccelerator& facts = accelerator.facts;
  const bool has_ids = facts.vendor_id != 0;
  py::dict row;
  row["kind"] = std::string(to_string(facts.kind));
  row["name"] = text_or_none(facts.name);
  row["hardware_type"] = std::string(to_string(accelerator.hardware_type));
  row["catalogue_name"] = text_or_none(accelerator.catalogue_name);
  row["pci_address"] = text_or_none(facts.pci_address);
  row["pci_id"] = has_ids ? py::object(py::str(fmt::format("{:04x}:{:04x}", facts.vendor_id, facts.device_id)))
                          : py::object(py::none());
  row["memory_bytes"] = facts.memory_bytes;
  row["compute_capability"] = capability_text(accelerator.compute_capability);
  row["link_bytes_per_s"] = facts.link_bytes_per_s;
  row["numa_os_indexes"] = facts.numa_os_indexes;
  row["nvml_index"] = accelerator.nvml_index;
  row["links"] = links_to_python(accelerator.links);
  row["os_devices"] = names(facts.os_devices);
  row["backends"] = names(facts.backends);
  row["is_display_card"] = facts.is_display_card;
  row["sources"] = names(accelerator.sources);
  row["problems"] = names(accelerator.problems);
  return row;
}

}  // namespace

void bind_accelerators(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "find_accelerators",
      [](const std::optional<std::shared_ptr<Machine>>& machine, const std::string& root,
         const std::optional<std::string>& nvml_library) {
        const auto found = without_gil([&] {
          return find_capabilities(
              {.machine = machine.value_or(nullptr), .sysfs_root = root, .nvml_library = nvml_library});
        });
        py::dict result;
        py::list rows;
        for (const FoundAccelerator& each : found.accelerators) rows.append(accelerator_to_python(each));
        result["accelerators"] = rows;
        result["driver_version"] = text_or_none(found.driver_version);
        result["cuda_version"] = text_or_none(found.cuda_version);
        result["problems"] = names(found.problems);
        return result;
      },
      py::arg("machine"), py::arg("root"), py::arg("nvml_library"));
  module.def(
      "detect_hardware_type",
      [](const std::string& platform, const std::string& device_kind) {
        return std::string(to_string(detect_hardware_type(platform, device_kind)));
      },
      py::arg("platform"), py::arg("device_kind"),
      "Returns the HardwareType value for a device's platform and kind; \"unknown\" for chips that are "
      "not in the table.");
  internal.def(
      "read_nvml",
      [](const std::string& library) {
        const auto report = without_gil([&] { return read_nvml(library); });
        py::dict result;
        py::list rows;
        for (const NvmlGpu& gpu : report.gpus) {
          py::dict row;
          row["name"] = text_or_none(gpu.name);
          row["memory_bytes"] = gpu.memory_bytes;
          row["compute_capability"] = capability_text(gpu.compute_capability);
          row["problems"] = gpu.problems;
          rows.append(row);
        }
        result["library"] = report.library;
        result["is_ready"] = report.is_ready;
        result["gpus"] = rows;
        result["driver_version"] = text_or_none(report.driver_version);
        result["cuda_version"] = text_or_none(report.cuda_version);
        result["problems"] = report.problems;
        return result;
      },
      py::arg("library") = "");
}

}  // namespace artifex_devices::bindings
