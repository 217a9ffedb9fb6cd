// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/named_sharding.h"

#include "artifex_devices/base/error.h"

namespace artifex_devices {

NamedSharding::NamedSharding(MeshRef mesh, PartitionSpec spec, MemoryKind kind, Uneven uneven)
    : Sharding(mesh->devices(), TileGrid(mesh->abstract_mesh(), spec), kind, uneven),
      mesh_(std::move(mesh)),
      spec_(std::move(spec)) {
  for (const SpecEntry& entry : spec_.entries()) {
    is_concrete_ = is_concrete_ && entry.kind != SpecEntry::Kind::kUnconstrained;
  }
}

std::shared_ptr<const NamedSharding> NamedSharding::make(MeshRef mesh, PartitionSpec spec, MemoryKind kind,
                                                         Uneven uneven) {
  if (!mesh || mesh->empty()) {
    fail(
        "NamedSharding: the mesh has no devices; expected at least one, got {}; make a mesh with devices, such as "
        "make_mesh((8,), ('data',))",
        mesh ? mesh->to_string() : "none");
  }
  spec.check(mesh->abstract_mesh(), "NamedSharding");
  return std::shared_ptr<const NamedSharding>(new NamedSharding(std::move(mesh), std::move(spec), kind, uneven));
}

std::string NamedSharding::to_string() const {
  return fmt::format("NamedSharding(mesh={}, spec={}, memory_kind={}{})", mesh_->to_string(), spec_.to_string(),
                     artifex_devices::to_string(memory_kind()),
                     uneven() == Uneven::kLastShort ? ", uneven=last-short" : "");
}

size_t NamedSharding::hash() const noexcept {
  const size_t seed = hash_mix(mesh_->hash(), spec_.hash());
  return hash_mix(seed, static_cast<size_t>(memory_kind()) * 2 + static_cast<size_t>(uneven()));
}

bool NamedSharding::equals(const Sharding& other) const noexcept {
  const auto* named = dynamic_cast<const NamedSharding*>(&other);
  return named && *mesh_ == *named->mesh_ && spec_ == named->spec_ && memory_kind() == named->memory_kind() &&
         uneven() == named->uneven();
}

ShardingRef NamedSharding::with_memory_kind(MemoryKind kind) const { return make(mesh_, spec_, kind, uneven()); }

ShardDomains::Names NamedSharding::names(std::string_view operation) const {
  return {.operation = operation, .spec = &spec_, .mesh = &mesh_->abstract_mesh()};
}

}  // namespace artifex_devices
