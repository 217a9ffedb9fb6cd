// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artifex_devices/partition/partition_spec.h"
#include "artifex_devices/sharding/mesh.h"
#include "artifex_devices/sharding/sharding.h"

namespace artifex_devices {

/// A mesh, concrete or abstract, and a spec that maps dimensions to its axes.
class NamedSharding final : public Sharding {
 public:
  /// Throws as PartitionSpec::check does, and InvalidArgument for an empty mesh.
  static std::shared_ptr<const NamedSharding> make(MeshRef mesh, PartitionSpec spec,
                                                   MemoryKind kind = MemoryKind::kDevice,
                                                   Uneven uneven = Uneven::kError);

  /// A sharding without devices, for shard shapes only. Throws as PartitionSpec::check does, and InvalidArgument for a
  /// mesh without axes.
  static std::shared_ptr<const NamedSharding> make_abstract(AbstractMesh mesh, PartitionSpec spec,
                                                            MemoryKind kind = MemoryKind::kDevice,
                                                            Uneven uneven = Uneven::kError);

  /// Null for an abstract sharding.
  const MeshRef& mesh() const noexcept { return mesh_; }
  const AbstractMesh& abstract_mesh() const noexcept { return mesh_ ? mesh_->abstract_mesh() : abstract_; }
  const PartitionSpec& spec() const noexcept { return spec_; }

  bool is_concrete() const noexcept override { return is_concrete_; }
  std::string to_string() const override;
  size_t hash() const noexcept override;
  bool equals(const Sharding& other) const noexcept override;
  ShardingRef with_memory_kind(MemoryKind kind) const override;

 private:
  NamedSharding(MeshRef mesh, AbstractMesh abstract, PartitionSpec spec, MemoryKind kind, Uneven uneven);
  ShardDomains::Names names(std::string_view operation) const override;
  MeshRef mesh_;
  AbstractMesh abstract_;  // used when mesh_ is null
  PartitionSpec spec_;
  bool is_concrete_ = true;
};

}  // namespace artifex_devices
