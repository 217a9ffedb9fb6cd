// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pybind11/stl.h>

#include "artifex_devices/topology/cgroup.h"
#include "artifex_devices/topology/cpu_share.h"
#include "artifex_devices/topology/hwloc_version.h"
#include "artifex_devices/topology/machine.h"
#include "artifex_devices/topology/machine_objects.h"
#include "artifex_devices/topology/system_files.h"
#include "artifex_devices/topology/world_text.h"
#include "bindings.h"
#include "class_members.h"
#include "errors.h"
#include "gil.h"
#include "pybind.h"
#include "python_arguments.h"
#include "python_text.h"

namespace artifex_devices::bindings {
namespace {

using ProcessPlaces = std::vector<std::pair<std::string, std::vector<int>>>;

std::vector<ProcessPlace> places_from_python(const ProcessPlaces& places) {
  std::vector<ProcessPlace> result;
  for (const auto& [machine, cpus] : places) result.push_back({machine, {cpus}});
  return result;
}

py::dict counts_to_python(const MachineCounts& counts) {
  py::dict result;
  result["packages"] = counts.packages;
  result["numanodes"] = counts.numa_nodes;
  result["l3caches"] = counts.l3_caches;
  result["cores"] = counts.cores;
  result["pus"] = counts.pus;
  result["groups"] = counts.groups;
  result["pci_devices"] = counts.pci_devices;
  result["os_devices"] = counts.os_devices;
  return result;
}

py::list nodes_to_python(const Machine& machine) {
  py::list result;
  for (const NumaNode& node : machine.numa_nodes()) {
    py::dict row;
    row["logical"] = node.logical_index;
    row["os_index"] = node.os_index;
    row["memory_bytes"] = node.memory_bytes;
    row["cpus"] = node.cpus.to_string();
    row["subtype"] = text_or_none(node.subtype);
    result.append(row);
  }
  return result;
}

py::list domains_to_python(const Machine& machine) {
  py::list result;
  for (const CpuDomain& domain : machine.cpu_domains()) {
    py::dict row;
    row["cpus"] = domain.cpus.to_string();
    row["nodes"] = domain.nodes;
    row["wider_nodes"] = domain.wider_nodes;
    row["default_node"] = domain.default_node;
    result.append(row);
  }
  return result;
}

py::list objects_to_python(const Machine& machine) {
  const auto objects = without_gil([&] { return machine_objects(machine); });
  py::list result;
  for (const MachineObject& object : objects) {
    py::dict row;
    row["depth"] = object.depth;
    row["type"] = object.type;
    row["logical"] = object.logical_index;
    row["os_index"] = object.os_index < 0 ? py::object(py::none()) : py::object(py::int_(object.os_index));
    row["name"] = text_or_none(object.name);
    row["subtype"] = text_or_none(object.subtype);
    row["model"] = text_or_none(object.model);
    row["pci"] = text_or_none(object.pci);
    row["cpus"] = object.cpus.to_string();
    row["bytes"] = object.bytes == 0 ? py::object(py::none()) : py::object(py::int_(object.bytes));
    result.append(row);
  }
  return result;
}

py::list missing_to_python(const Machine& machine) {
  py::list result;
  if (!machine.is_live()) return result;
  const auto missing = without_gil([&] { return missing_facts(machine); });
  for (const MissingFact& fact : missing) {
    py::dict row;
    row["fact"] = fact.fact;
    row["reason"] = text_of_bytes(fact.reason);
    row["assumed"] = fact.assumed;
    result.append(row);
  }
  return result;
}

py::dict cgroup_to_python(const CgroupReport& report) {
  py::dict result;
  result["cpus"] = report.limits.cpus;
  result["cpus_from"] = text_or_none(report.cpus_from);
  result["memory_bytes"] = report.limits.memory_bytes;
  result["memory_from"] = text_or_none(report.memory_from);
  result["cpuset"] = text_or_none(report.cpuset);
  result["cpuset_from"] = text_or_none(report.cpuset_from);
  py::list files;
  for (const CgroupFile& file : report.files)
    files.append(py::make_tuple(text_of_bytes(file.path), text_of_bytes(file.text)));
  result["files"] = files;
  py::list problems;
  for (const std::string& problem : report.problems) problems.append(text_of_bytes(problem));
  result["problems"] = problems;
  return result;
}

template <class F>
auto loaded(F&& make) {
  const ReleaseGil release;
  return std::const_pointer_cast<Machine>(make());
}

}  // namespace

void bind_topology(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  py::class_<Machine, std::shared_ptr<Machine>>(module, "Machine", R"(A machine as hwloc describes it.

The live machine, a machine read from an hwloc XML file, or a synthetic one. Threads are bound on the live machine only.

Example:
    >>> from artifex_devices import Machine
    >>> machine = Machine.from_synthetic("pack:2 numa:1 core:4 pu:2")
    >>> [domain["cpus"] for domain in machine.cpu_domains]
    ['0-7', '8-15']
)")
      .def_static(
          "live", [] { return loaded([] { return Machine::live(); }); },
          "Returns the machine of this process, without the parts that affinity and cgroups forbid.")
      .def_static(
          "from_xml",
          [](const TextArgument& path) {
            return loaded(
                [text = text_from_python(path, "Machine.from_xml", "path")] { return Machine::from_xml(text); });
          },
          py::arg("path"), R"(Reads an hwloc XML file (format 1 or 2).

Raises:
    FileNotFoundError: The file does not exist.
    ValueError: The file is not hwloc XML, is larger than 64 MiB, or declares entities.
)")
      .def_static(
          "from_synthetic",
          [](const TextArgument& description) {
            return loaded([text = text_from_python(description, "Machine.from_synthetic", "description")] {
              return Machine::from_synthetic(text);
            });
          },
          py::arg("description"),
          R"(Creates a machine from hwloc's synthetic description, such as "pack:2 numa:2 core:4 pu:2".

Raises:
    ValueError: The text is malformed or describes more than 4,096 processing units.
)")
      .def_property_readonly("is_live", by_reference(&Machine::is_live),
                             "Whether this is the machine that the process runs on.")
      .def_property_readonly("source", by_reference(&Machine::source),
                             "Source of the description: \"live\", the path, or the synthetic description.")
      .def_property_readonly(
          "counts", [](const Machine& self) { return counts_to_python(self.counts()); },
          "Number of objects by type (dict), as hwloc counts them.")
      .def_property_readonly("numa_nodes", &nodes_to_python, "NUMA nodes (list of dicts); memory in bytes.")
      .def_property_readonly(
          "cpu_domains", &domains_to_python,
          "CPU domains (list of dicts), the default CPU devices: each minimal set of CPUs that has a NUMA node.")
      .def_property_readonly("usable_cpus", by_reference(&Machine::usable_cpus),
                             "Number of CPUs that the process may use, by affinity and cgroup quota.")
      .def_property_readonly("usable_memory_bytes", by_reference(&Machine::usable_memory_bytes),
                             "Number of bytes of memory that the process may use, by cgroup and address-space limits.")
      .def_property_readonly("objects", &objects_to_python,
                             R"(Every object that hwloc reports (list of dicts), parents before their children.

Keys: depth (0: the machine), type ("Package", "NUMANode", "L3Cache", "Core", "PU", "PCIDev", "OSDev", ...), logical,
os_index, name, subtype, model, pci, cpus, bytes (memory of a node, size of a cache). Missing values are None.
)")
      .def_property_readonly("missing_facts", &missing_to_python,
                             R"(Facts that the system hides from this process (list of dicts).

Keys: fact, reason (which file, and why), assumed (the value used instead). For the live machine only, read again at each
access.
)")
      .def("to_xml", by_reference(&Machine::to_xml), "Returns the machine as hwloc XML text, format 2.")
      .def("__repr__", [](const Machine& self) {
        return fmt::format("Machine({}: {} CPU domains, {} NUMA nodes, {} PUs)", self.source(),
                           self.cpu_domains().size(), self.counts().numa_nodes, self.counts().pus);
      });
  internal.def(
      "cgroup_report",
      [](const std::string& root) {
        const auto report = without_gil([&] { return read_cgroup_report(root); });
        return cgroup_to_python(report);
      },
      py::arg("root") = "",
      "Returns the limits of the process's cgroups (dict), their files, and the files that cannot be read.");
  internal.def(
      "memory_policy",
      [] {
        const MemoryPolicy policy = memory_policy();
        return py::make_tuple(text_or_none(policy.name), policy.nodes, text_or_none(policy.problem));
      },
      "Returns (policy for new pages of this thread, its NUMA nodes by OS number, why it cannot be read).");
  internal.def(
      "build_facts",
      [] {
        py::dict facts;
#ifdef __clang__
        facts["compiler"] = "clang " __clang_version__;
#else
        facts["compiler"] = "gcc " __VERSION__;
#endif
        facts["hwloc"] = hwloc_version();
        return facts;
      },
      "Returns the versions that the core was built with (dict of texts).");
  internal.def(
      "plan_cpu_shares",
      [](const ProcessPlaces& places, std::string_view bind_flag) {
        std::vector<std::pair<int, std::vector<int>>> shares;
        for (CpuShare& share : plan_cpu_shares(places_from_python(places), bind_flag)) {
          shares.emplace_back(share.part, std::move(share.processes));
        }
        return shares;
      },
      py::arg("places"), py::arg("bind_flag"),
      "Returns (part, processes that split the affinity mask) for each process.");
  internal.def(
      "take_cpu_share",
      [](const ProcessPlaces& places, std::string_view bind_flag, int process) {
        const std::vector<ProcessPlace> places_of = places_from_python(places);
        const ReleaseGil release;
        return take_cpu_share(places_of, plan_cpu_shares(places_of, bind_flag), process).cpus;
      },
      py::arg("places"), py::arg("bind_flag"), py::arg("process"),
      "Restricts this process to its share of the CPUs of its machine. Returns them, ascending.");
  internal.def(
      "parse_world",
      [](const std::string& text) {
        try {
          const WorldText world = parse_world(text);
          std::shared_ptr<Machine> machine;
          if (!world.xml_path.empty()) machine = loaded([&] { return Machine::from_xml(world.xml_path); });
          if (!world.synthetic.empty()) machine = loaded([&] { return Machine::from_synthetic(world.synthetic); });
          const auto device_kind = world.device_kind.empty() ? std::nullopt : std::optional(world.device_kind);
          return std::make_tuple(machine, world.num_devices, device_kind);
        } catch (const Error&) {
          rethrow_with_context("simulate: ");
        }
      },
      py::arg("text"), R"(Parses the text of a world.

Returns:
    (Machine, or None for this machine; number of devices, or None; name of the GPUs, or None).
)");
}

}  // namespace artifex_devices::bindings
