// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/named_sharding.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

NamedSharding::NamedSharding(MeshRef mesh, AbstractMesh abstract, PartitionSpec spec, MemoryKind kind, Uneven uneven)
    : Sharding(mesh ? mesh->devices() : nullptr, TileGrid(mesh ? mesh->abstract_mesh() : abstract, spec), kind, uneven),
      mesh_(std::move(mesh)),
      abstract_(std::move(abstract)),
      spec_(std::move(spec)) {
  is_concrete_ = mesh_ != nullptr;
  for (const SpecEntry& entry : spec_.entries()) {
    is_concrete_ = is_concrete_ && entry.kind != SpecEntry::Kind::kUnconstrained;
  }
}

std::shared_ptr<const NamedSharding> NamedSharding::make(MeshRef mesh, PartitionSpec spec, MemoryKind kind,
                                                         Uneven uneven) {
  if (!mesh || mesh->empty()) {
    throw_error(
        "NamedSharding: the mesh has no devices; expected at least one, got {}; make a mesh with devices, such as "
        "make_mesh((8,), ('data',))",
        mesh ? mesh->to_string() : "none");
  }
  spec.check(mesh->abstract_mesh(), "NamedSharding");
  return std::shared_ptr<const NamedSharding>(new NamedSharding(std::move(mesh), {}, std::move(spec), kind, uneven));
}

std::shared_ptr<const NamedSharding> NamedSharding::make_abstract(AbstractMesh mesh, PartitionSpec spec,
                                                                  MemoryKind kind, Uneven uneven) {
  if (mesh.empty()) {
    throw_error(
        "NamedSharding: the mesh has no axes; expected at least one, got {}; make a mesh with axes, such as "
        "AbstractMesh((8,), ('data',))",
        mesh.to_string());
  }
  spec.check(mesh, "NamedSharding");
  return std::shared_ptr<const NamedSharding>(
      new NamedSharding(nullptr, std::move(mesh), std::move(spec), kind, uneven));
}

std::string NamedSharding::to_string() const {
  const bool show_kind = mesh_ || memory_kind() != MemoryKind::kDevice;
  return fmt::format("NamedSharding(mesh={}, spec={}{}{}{})", mesh_ ? mesh_->to_string() : abstract_.to_string(),
                     spec_.to_string(), show_kind ? ", memory_kind=" : "",
                     show_kind ? artifex_devices::to_string(memory_kind()) : "",
                     uneven() == Uneven::kLastShort ? ", uneven=last-short" : "");
}

size_t NamedSharding::hash() const noexcept {
  const size_t seed = hash_mix(mesh_ ? mesh_->hash() : abstract_.hash(), spec_.hash());
  return hash_mix(seed, static_cast<size_t>(memory_kind()) * 2 + static_cast<size_t>(uneven()));
}

bool NamedSharding::equals(const Sharding& other) const noexcept {
  const auto* named = dynamic_cast<const NamedSharding*>(&other);
  if (!named || is_abstract() != named->is_abstract()) return false;
  const bool same_mesh = mesh_ ? *mesh_ == *named->mesh_ : abstract_ == named->abstract_;
  return same_mesh && spec_ == named->spec_ && memory_kind() == named->memory_kind() && uneven() == named->uneven();
}

ShardingRef NamedSharding::with_memory_kind(MemoryKind kind) const {
  return mesh_ ? make(mesh_, spec_, kind, uneven()) : make_abstract(abstract_, spec_, kind, uneven());
}

ShardDomains::Names NamedSharding::names(std::string_view operation) const {
  return {.operation = operation, .spec = &spec_, .mesh = &abstract_mesh()};
}

}  // namespace artifex_devices
