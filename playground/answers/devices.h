// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/cluster/cluster.h"
#include "artifex_devices/sharding/mesh.h"
#include "json_writer.h"
#include "question.h"

namespace artifex_devices::playground {

/// Most devices of a mesh in the page.
inline constexpr int64_t kMostDevices = 1 << 14;

/// The cluster of a question: `chip` is "v5e" (TPUs; `pod` is the shape of a slice, "4x4"), or "h100" (GPUs); `nodes`
/// counts slices, nodes or racks. Null where `chip` is "". Throws as the presets do.
ClusterRef cluster_of(const Question& question);

/// The mesh over the first devices of the question's cluster, or over CPU devices where it has none.
MeshRef mesh_on(const AbstractMesh& axes, const ClusterRef& cluster);

/// Names and sizes of the axes.
std::vector<std::pair<std::string, int64_t>> axes_of(const AbstractMesh& mesh);

/// A published number of a cluster.
struct Rate {
  std::string name;
  double value = 0;
  std::string unit;
  std::string source;
};
void visit_fields(planner::FieldsOf<Rate> auto& rate, const auto& visit) {
  visit("name", rate.name);
  visit("value", rate.value);
  visit("unit", rate.unit);
  visit("source", rate.source);
}
/// The rates of a cluster's links and network that are known; with a format of products, those of the chip before.
std::vector<Rate> rates_of(const Cluster& cluster, std::optional<MatmulFormat> format = std::nullopt);

/// A row of the catalogue's sources.
struct Source {
  std::string id;
  std::string title;
  std::string address;
};
void visit_fields(planner::FieldsOf<Source> auto& source, const auto& visit) {
  visit("id", source.id);
  visit("title", source.title);
  visit("address", source.address);
}
/// The sources that some texts begin with: "S8", "S2 S5", "S12, a table".
std::vector<Source> sources_in(const std::vector<std::string>& texts);

}  // namespace artifex_devices::playground
