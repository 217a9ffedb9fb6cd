// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/place.h"

#include <algorithm>
#include <unordered_map>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kDevicePut = "device_put";

std::string operation_of(const PlacementOptions& options) { return options.is_explicit ? "device_put" : "reshard"; }

bool on_same_devices(const Sharding& a, const Sharding& b) {
  if (*a.devices() == *b.devices()) return true;
  return a.num_devices() == b.num_devices() && std::ranges::all_of(a.devices()->devices(), [&](const Device* device) {
           return b.devices()->contains(device);
         });
}

/// An operation that reshards over the devices that an Array is on already makes no transfer; device_put does.
void check_move(const Array& source, const Sharding& target, bool force_copy, const PlacementOptions& options) {
  constexpr auto kDirection = TransferDirection::kDeviceToDevice;
  if (options.guards.level(kDirection) == GuardLevel::kAllow) return;
  if (!force_copy && is_already_placed(source, target)) return;
  if (!options.is_explicit && on_same_devices(*source.sharding(), target)) return;
  check_transfer(options.guards, kDirection, options.is_explicit, [&] {
    return TransferDescription{operation_of(options), to_string(source.shape()), std::string(name(source.dtype())),
                               source.sharding()->to_string(), target.to_string()};
  });
}

PlacementStrategy strategy_for(const Array& source, const Sharding& target) {
  const Sharding& from = *source.sharding();
  const bool one_world = target.devices()->client() == from.devices()->client();
  const bool within_process = target.is_fully_addressable() && (!one_world || from.is_fully_addressable());
  if (within_process) return one_world ? PlacementStrategy::kReshard : PlacementStrategy::kThroughHost;
  // As in JAX, an Array of another world and an uncommitted Array on devices of one process are values that each
  // process has. That is the same in all processes; whether they are devices of this process is not.
  const bool is_global = one_world && (source.committed() || from.devices()->processes().size() > 1);
  return is_global ? PlacementStrategy::kExchange : PlacementStrategy::kValuePerProcess;
}

}  // namespace

void PlacementOptions::check() const {
  if (donation == Donation::kNone || !may_alias.value_or(false)) return;
  throw_error(
      "device_put: donate and may_alias are both True; expected at most one of them, as a donated source is deleted");
}

ArrayPlacement plan_placement(const Array& source, const PlacementTarget& target, const PlacementOptions& options) {
  options.check();
  source.check_alive(kDevicePut);
  LayoutRef layout = target.layout ? layout_for(target, source.shape()) : source.layout();
  const bool force_copy = options.may_alias.has_value() && !*options.may_alias;
  ShardingRef sharding = target.sharding;
  if (!sharding) {
    sharding = target.memory_kind ? source.sharding()->with_memory_kind(*target.memory_kind) : source.sharding();
  }
  const bool committed = target.sharding || target.memory_kind ? target.committed : source.committed();
  const bool is_same =
      *sharding == *source.sharding() && committed == source.committed() && equal_layouts(layout, source.layout());
  if (is_same && !force_copy && options.donation == Donation::kNone) {
    return {PlacementStrategy::kUnchanged, std::move(sharding), {committed, false, false, std::move(layout)}};
  }
  check_move(source, *sharding, force_copy, options);
  const PlacementStrategy strategy = strategy_for(source, *sharding);
  const bool donate = options.donation == Donation::kNow;
  return {strategy, std::move(sharding), {committed, donate, force_copy, std::move(layout)}};
}

ArrayRef place(const ArrayRef& source, const PlacementTarget& target, const PlacementOptions& options) {
  const ArrayPlacement placement = plan_placement(*source, target, options);
  switch (placement.strategy) {
    case PlacementStrategy::kUnchanged:
      return source;
    case PlacementStrategy::kReshard:
    case PlacementStrategy::kExchange:
      return reshard(source, placement.sharding, placement.options);
    case PlacementStrategy::kThroughHost:
    case PlacementStrategy::kValuePerProcess:
      break;
  }
  ArrayRef placed =
      device_put(*device_get(source), placement.sharding, placement.options.committed, *placement.options.layout);
  if (placement.options.donate) source->donate();
  return placed;
}

ArrayRef place(const HostView& source, const PlacementTarget& target, const PlacementOptions& options) {
  options.check();
  if (!target.sharding)
    throw_error("{}: the target has no sharding; expected one, as a host array is on no device", kDevicePut);
  check_placeable(*target.sharding, kDevicePut);
  LayoutRef layout = layout_for(target, source.shape);
  check_host_transfer(source, *target.sharding, "array", options);
  if (options.may_alias.value_or(false) && !layout && can_alias(source, *target.sharding)) {
    return device_put_alias(source, target.sharding, target.committed);
  }
  return device_put(source, target.sharding, target.committed, std::move(layout));
}

void check_placeable(const Sharding& sharding, std::string_view operation) {
  check_has_devices(sharding, operation);
  if (sharding.is_concrete()) return;
  throw_error(
      "{}: {} leaves a dimension UNCONSTRAINED; expected None or a mesh axis for each dimension; replace UNCONSTRAINED",
      operation, sharding.to_string());
}

LayoutRef layout_for(const PlacementTarget& target, const Dims& shape) {
  if (!target.layout) return nullptr;
  if (target.layout->rank() != shape.size()) {
    throw_error(
        "{}: the Layout orders {} dimensions and the value of shape {} has {}; expected a Layout of the same rank; "
        "leave the layout out for row-major",
        kDevicePut, target.layout->rank(), to_string(shape), shape.size());
  }
  return stored_layout(*target.layout, shape.size(), kDevicePut);
}

void check_host_transfer(const HostView& source, const Sharding& target, std::string_view source_type,
                         const PlacementOptions& options) {
  check_transfer(options.guards, TransferDirection::kHostToDevice, options.is_explicit, [&] {
    target.domains(source.shape, kDevicePut);  // a shape that cannot be placed is that error, not the guard's
    return TransferDescription{operation_of(options), to_string(source.shape), std::string(name(source.dtype)),
                               fmt::format("a {} of the host", source_type), target.to_string()};
  });
}

bool can_alias(const HostView& source, const Sharding& sharding) {
  return source.byte_strides == row_major_strides(source.shape, itemsize(source.dtype)) &&
         sharding.memory_kind() != MemoryKind::kPinnedHost && sharding.buffers().size() == 1 &&
         sharding.is_fully_replicated() && sharding.devices()->client()->is_host_readable(sharding.memory_kind());
}

bool is_already_placed(const Array& source, const Sharding& target) {
  const Sharding& from = *source.sharding();
  if (target.is_equivalent_to(from, source.rank())) return true;
  if (target.devices()->client() != from.devices()->client() || target.memory_kind() != from.memory_kind()) {
    return false;
  }
  const ShardDomains held = from.domains(source.shape(), kDevicePut);
  const ShardDomains wanted = target.domains(source.shape(), kDevicePut);
  std::unordered_map<const Device*, int64_t> tile_of;
  for (int64_t p = 0; p < from.num_devices(); ++p) tile_of.emplace((*from.devices())[p], from.grid().tile(p));
  for (int64_t p = 0; p < target.num_devices(); ++p) {
    const auto found = tile_of.find((*target.devices())[p]);
    if (found == tile_of.end() || held.domain(found->second) != wanted.domain(target.grid().tile(p))) return false;
  }
  return true;
}

}  // namespace artifex_devices
