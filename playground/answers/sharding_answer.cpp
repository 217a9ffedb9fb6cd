// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "answer.h"
#include "artifex_devices/base/dtype.h"
#include "artifex_devices/render/svg.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "devices.h"
#include "notation.h"

namespace artifex_devices::playground {
namespace {

constexpr int64_t kMostRows = 64;

/// A device and the box that it holds.
struct Held {
  std::string device;
  std::vector<std::pair<int64_t, int64_t>> box;  // begin and end in each dimension
  int64_t replica = 0;
};
void visit_fields(planner::FieldsOf<Held> auto& held, const auto& visit) {
  visit("device", held.device);
  visit("box", held.box);
  visit("replica", held.replica);
}

int64_t bytes_of(Dims shape, DType dtype) {
  shape.push_back(itemsize(dtype));
  return checked_product(shape, "shape");
}

}  // namespace

JsonObject sharding_answer(const Question& question) {
  const ClusterRef cluster = cluster_of(question);
  const MeshRef mesh = mesh_on(mesh_of(question.text("mesh")), cluster);
  const Dims shape = shape_of(question.text("shape"));
  const DType dtype = dtype_of(question.text("dtype"));
  const auto sharding = NamedSharding::make(mesh, spec_of(question.text("spec")));
  const ShardDomains domains = sharding->domains(shape, "shard_shape");
  const Dims part = domains.shard_shape();

  std::vector<Held> held;
  for (const Position position : sharding->positions()) {
    if (position.number() == kMostRows) break;
    const TileId tile = sharding->grid().tile(position);
    const IndexDomain box = domains.domain(tile);
    Held& row = held.emplace_back();
    row.device = sharding->device(position).to_string();
    row.replica = sharding->grid().replica(position);
    for (int64_t d = 0; d < shape.size(); ++d) {
      row.box.emplace_back(box.origin[d], box.origin[d] + box.shape[d]);
    }
  }
  return JsonObject()
      .add("axes", axes_of(mesh->abstract_mesh()))
      .add("shape", shape)
      .add("spec", sharding->spec().to_string())
      .add("devices", mesh->size())
      .add("tiles", sharding->grid().tiles())
      .add("replicas", sharding->grid().replicas())
      .add("bytes", bytes_of(shape, dtype))
      .add("shard_shape", part)
      .add("shard_bytes", bytes_of(part, dtype))
      .add("held", held)
      .add("svg", sharding_svg(*sharding, shape));
}

}  // namespace artifex_devices::playground
