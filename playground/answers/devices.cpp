// SPDX-License-Identifier: Apache-2.0
#include "devices.h"

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/topology/described_machine.h"
#include "notation.h"

namespace artifex_devices::playground {
namespace {

std::vector<int> pod_of(const std::string& text) {
  std::vector<int> sizes;
  for (const int64_t size : shape_of(text)) sizes.push_back(static_cast<int>(std::min<int64_t>(size, 1 << 30)));
  return sizes;
}

/// CPU devices without memory, as simulate() has them with compile_only.
ClientRef cpus(int64_t count) {
  MachineDescription machine;
  machine.source = "playground";
  machine.numa_nodes = {NumaNode{}};
  machine.cpu_domains = {CpuDomain{}};
  machine.usable_cpus = 1;
  return Client::make(std::make_shared<DescribedMachine>(std::move(machine)),
                      ClientOptions{.num_devices = count, .compile_only = true});
}

}  // namespace

ClusterRef cluster_of(const Question& question) {
  const std::string chip = question.text_or_empty("chip");
  if (chip.empty()) return nullptr;
  const std::string pod = question.text_or_empty("pod");
  const int64_t nodes = question.integer("nodes");
  return pod.empty() ? gpu_cluster(chip, nodes, {}) : tpu_cluster(chip, pod_of(pod), nodes);
}

MeshRef mesh_on(const AbstractMesh& axes, const ClusterRef& cluster) {
  if (axes.size() > kMostDevices) {
    throw_error("mesh: {} has {} devices; expected at most {} in this page; use smaller sizes", axes.axes_text(),
                axes.size(), kMostDevices);
  }
  const ClientRef client = cluster ? cluster_client(cluster) : cpus(axes.size());
  return make_mesh(axes.axis_sizes(), axes.axis_names(), axes.axis_types(), *client, "make_mesh");
}

std::vector<std::pair<std::string, int64_t>> axes_of(const AbstractMesh& mesh) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (int64_t i = 0; i < mesh.rank(); ++i) {
    axes.emplace_back(mesh.axis_names()[static_cast<size_t>(i)].text(), mesh.axis_sizes()[i]);
  }
  return axes;
}

std::vector<Rate> rates_of(const Cluster& cluster, std::optional<MatmulFormat> format) {
  std::vector<Rate> rates;
  const auto add = [&](const char* name, const std::optional<SourcedNumber>& rate, const char* unit) {
    if (rate) rates.push_back({name, rate->value, unit, rate->source});
  };
  if (format) {
    add("matrix products", cluster.chip().peak_flops[static_cast<size_t>(*format)], "FLOP/s of a chip");
    add("memory", cluster.chip().memory_bandwidth, "B/s");
  }
  add("link", cluster.inside().bandwidth, "B/s");
  add("hop", cluster.inside().latency, "s");
  if (cluster.slices() > 1) {
    add("network", cluster.between().bandwidth, "B/s of a chip");
    add("network step", cluster.between().latency, "s");
  }
  return rates;
}

std::vector<Source> sources_in(const std::vector<std::string>& texts) {
  std::vector<Source> found;
  for (const CatalogueSource& source : catalogue_sources()) {
    const auto names = [&](std::string_view text) {
      for (size_t i = text.find(source.id); i != std::string_view::npos; i = text.find(source.id, i + 1)) {
        const size_t end = i + source.id.size();
        if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
      }
      return false;
    };
    if (std::ranges::any_of(texts, names)) {
      found.push_back({std::string(source.id), std::string(source.title), std::string(source.address)});
    }
  }
  return found;
}

}  // namespace artifex_devices::playground
