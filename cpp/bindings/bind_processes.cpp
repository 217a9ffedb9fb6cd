// SPDX-License-Identifier: Apache-2.0
// How the processes of a job describe their devices to each other, and join them into one world.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "artifex_devices/device/base_client.h"
#include "artifex_devices/device/cuda/cuda_backend.h"
#include "artifex_devices/topology/gpu_share.h"
#include "bindings.h"
#include "errors.h"

namespace artifex_devices::bindings {
namespace {

/// A CPU domain as (CPUs, nodes, wider nodes, default node, cores).
using DomainTuple = std::tuple<std::vector<int>, std::vector<int>, std::vector<int>, int, int>;
/// A ProcessInfo in types that pickle: (host, number of devices, domains, bytes of the memories, (kind, bytes) of each
/// device with separate memory).
using ProcessTuple = std::tuple<std::string, int64_t, std::vector<DomainTuple>, std::vector<int64_t>,
                                std::vector<std::pair<std::string, std::optional<int64_t>>>>;

ProcessTuple tuple_of(const ProcessInfo& info) {
  std::vector<DomainTuple> domains;
  for (const CpuDomain& domain : info.domains) {
    domains.emplace_back(domain.cpus.cpus, domain.nodes, domain.wider_nodes, domain.default_node, domain.cores);
  }
  std::vector<std::pair<std::string, std::optional<int64_t>>> devices;
  for (const DeviceFacts& device : info.devices) devices.emplace_back(device.kind, device.memory_bytes);
  return {info.host, info.num_devices, std::move(domains), info.arena_memory_bytes, std::move(devices)};
}

std::vector<ProcessInfo> processes_from(const std::vector<ProcessTuple>& tuples) {
  std::vector<ProcessInfo> processes;
  for (const auto& [host, num_devices, domains, memory_bytes, devices] : tuples) {
    ProcessInfo& info = processes.emplace_back(ProcessInfo{host, num_devices, {}, memory_bytes});
    for (const auto& [cpus, nodes, wider_nodes, default_node, cores] : domains) {
      info.domains.push_back({CpuSet{cpus}, nodes, wider_nodes, default_node, cores});
    }
    for (const auto& [kind, bytes] : devices) info.devices.push_back({kind, bytes});
  }
  return processes;
}

template <class F>
std::shared_ptr<Client> joined(F&& join) {
  try {
    return join();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("distributed.")) throw;
    rethrow_with_context("distributed.initialize: ");
  }
}

void bind_jobs(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "describe_process",
      [](const std::optional<std::shared_ptr<Machine>>& machine, std::optional<int64_t> num_devices,
         const std::optional<std::shared_ptr<Backend>>& backend) {
        if (!machine) return tuple_of(describe_base_client());
        return tuple_of(Client::describe(**machine, num_devices, backend.value_or(nullptr).get()));
      },
      py::arg("machine") = py::none(), py::arg("num_devices") = py::none(), py::arg("backend") = py::none(),
      R"(Returns a tuple, which can be pickled, that describes the devices of this process.

Without a machine, it describes the devices of the base client.
)");
  internal.def(
      "join_world",
      [](const std::vector<ProcessTuple>& processes, int process_index) {
        return joined([&] { return join_cpus(processes_from(processes), ProcessIndex(process_index)); });
      },
      py::arg("processes"), py::arg("process_index"),
      "Creates the base client with the devices of all processes, from what describe_process returned in "
      "each of them.");
  internal.def(
      "make_shared_client",
      [](const std::shared_ptr<Machine>& machine, const std::vector<ProcessTuple>& processes, int process_index,
         const std::optional<std::shared_ptr<Backend>>& backend) {
        ClientOptions options;
        options.backend = backend.value_or(nullptr);
        options.processes = processes_from(processes);
        options.process_index = ProcessIndex(process_index);
        if (process_index >= 0 && static_cast<size_t>(process_index) < processes.size()) {
          options.num_devices = options.processes[static_cast<size_t>(process_index)].num_devices;
        }
        return Client::make(machine, options);
      },
      py::arg("machine"), py::arg("processes"), py::arg("process_index"), py::arg("backend") = py::none(),
      "Creates the client of one process of several; one process may create any number of clients.");
}

void bind_jobs_of_gpus(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  internal.def(
      "plan_gpu_shares",
      [](const std::vector<std::tuple<std::string, std::vector<std::string>, std::optional<std::vector<int>>>>&
             tuples) {
        std::vector<GpuPlace> places;
        for (const auto& [machine, gpus, chosen] : tuples) places.push_back({machine, gpus, chosen});
        std::vector<std::vector<int>> shares = plan_gpu_shares(places);
        std::vector<std::pair<std::string, std::vector<int>>> shared;
        for (SharedGpu& each : shared_gpus(places, shares)) {
          shared.emplace_back(std::move(each.gpu), std::move(each.processes));
        }
        return std::pair(std::move(shares), std::move(shared));
      },
      py::arg("places"),
      R"(Returns the numbers of the GPUs that each process uses, and (PCI address, processes) of each shared GPU.

`places` has (machine, PCI addresses of the visible GPUs, chosen numbers or None) of each process.
)");
  internal.def(
      "describe_gpus",
      [](const std::vector<int>& ordinals) {
        const BackendRef backend = make_cuda_backend(1, ordinals);
        return tuple_of(Client::describe(*Machine::live(), static_cast<int64_t>(ordinals.size()), backend.get()));
      },
      py::arg("ordinals"),
      "Returns a tuple as describe_process does, for a process that uses the GPUs of these numbers.");
  internal.def(
      "join_gpu_world",
      [](const std::vector<ProcessTuple>& processes, int process_index, const std::vector<int>& ordinals) {
        return joined([&] {
          return join_gpus(processes_from(processes), ProcessIndex(process_index), make_cuda_backend(1, ordinals));
        });
      },
      py::arg("processes"), py::arg("process_index"), py::arg("ordinals"),
      "Creates the base client with the GPUs of all processes, from what describe_gpus returned in each "
      "of them.");
}

}  // namespace

void bind_processes(py::module_& module) {
  bind_jobs(module);
  bind_jobs_of_gpus(module);
}

}  // namespace artifex_devices::bindings
