// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/sharding.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

ShardDomains Sharding::domains(const Dims& shape, std::string_view operation) const {
  return ShardDomains(grid_, shape, uneven_, names(operation));
}

bool Sharding::covers(const Sharding& other, const Dims& shape, std::string_view operation) const {
  if (grid_ == other.grid_ && uneven_ == other.uneven_) return true;
  const ShardDomains held = domains(shape, operation);
  const ShardDomains wanted = other.domains(shape, operation);
  for (const Position position : positions()) {
    const IndexDomain outer = held.domain(position);
    const IndexDomain inner = wanted.domain(position);
    for (int64_t d = 0; d < shape.size(); ++d) {
      const bool is_inside =
          outer.origin[d] <= inner.origin[d] && inner.origin[d] + inner.shape[d] <= outer.origin[d] + outer.shape[d];
      if (!is_inside) return false;
    }
  }
  return true;
}

bool Sharding::is_equivalent_to(const Sharding& other, int64_t ndim) const {
  for (const Sharding* sharding : {this, &other}) {
    const int64_t least = sharding->grid_.parts().size();
    if (ndim < least) {
      throw_error(
          "is_equivalent_to: ndim is {} but {} shards {} dimensions; expected ndim of {} or more; give the rank of the "
          "arrays",
          ndim, sharding->to_string(), least, least);
    }
  }
  if (this == &other) return true;
  if (memory_kind_ != other.memory_kind_ || !(grid_ == other.grid_) || is_abstract() != other.is_abstract())
    return false;
  if (devices_ && !(*devices_ == *other.devices_)) return false;
  return uneven_ == other.uneven_ || grid_.tiles() == 1;
}

void check_has_devices(const Sharding& sharding, std::string_view operation) {
  if (!sharding.is_abstract()) return;
  throw_error(
      "{}: {} is on an AbstractMesh, which has no devices; expected a sharding on a Mesh; make a Mesh of the same axes",
      operation, sharding.to_string());
}

}  // namespace artifex_devices
