// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/place.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/transfer/brief_copy.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/value_digest.h"

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

void check_host_transfer(const HostView& source, const Sharding& target, const PlacementOptions& options) {
  check_transfer(options.guards, TransferDirection::kHostToDevice, options.is_explicit, [&] {
    target.domains(source.shape, kDevicePut);  // a shape that cannot be placed is that error, not the guard's
    return TransferDescription{operation_of(options), to_string(source.shape), std::string(name(source.dtype)),
                               fmt::format("a {} of the host", options.source_type), target.to_string()};
  });
}

/// "device_put of float32(8, 4) to ...", by all processes of the sharding.
JointOperation joint_placement(DType dtype, const Dims& shape, const Sharding& sharding) {
  return {sharding.devices()->client(),
          fmt::format("{} of {}{} to {}", kDevicePut, name(dtype), to_string(shape), sharding.to_string()),
          sharding.devices()->processes()};
}

bool compares_values(const Sharding& sharding, const Transport* transport) {
  // As in JAX, a process without a device of the sharding may pass another value, or not call at all.
  const DeviceList& devices = *sharding.devices();
  return transport != nullptr && static_cast<int>(devices.processes().size()) == devices.client()->process_count() &&
         transport->compares_values();
}

/// Throws InvalidArgument in all processes of the sharding if their values differ.
void check_same_everywhere(const HostView& value, const Sharding& sharding, Transport* transport) {
  if (!compares_values(sharding, transport)) return;
  const auto digest = run_blocking([&] { return digest_of_value(value); });
  const JointOperation operation = joint_placement(value.dtype, value.shape, sharding);
  const std::vector<std::string> digests = transport->agree(
      operation, "same value", {reinterpret_cast<const char*>(digest.data()), digest.size() * sizeof(digest[0])});
  if (std::ranges::adjacent_find(digests, std::not_equal_to<>()) == digests.end()) return;
  const auto count = [&](const std::string& each) { return std::ranges::count(digests, each); };
  const std::string& common = *std::ranges::max_element(digests, {}, count);
  std::vector<int64_t> different;
  for (size_t i = 0; i < digests.size(); ++i) {
    if (digests[i] != common) different.push_back(operation.processes[i].number());
  }
  throw_error(
      "{}: the processes do not have the same value; expected equal shapes, dtypes and bits, got another value in "
      "process {} than in most; give each process's own part to make_array_from_process_local_data",
      operation.text, fmt::join(different, ", "));
}

/// The value of an Array that each process has, after a comparison between all processes.
std::shared_ptr<const HostView> value_of_all(const ArrayRef& source, const Sharding& sharding, Transport* transport) {
  std::shared_ptr<const HostView> value;
  try {
    value = device_get(source);
  } catch (const std::exception& error) {  // other processes would wait
    if (compares_values(sharding, transport)) {
      transport->refuse(joint_placement(source->dtype(), source->shape(), sharding), error);
    }
    throw;
  }
  check_same_everywhere(*value, sharding, transport);
  return value;
}

ArrayRef copy_from_host(const HostView& value, const ShardingRef& sharding, bool committed, const LayoutRef& layout,
                        int64_t shareable_bytes = 0, JointCopies* joint = nullptr) {
  const bool is_brief = is_brief_copy(value.nbytes(), *sharding);
  if (is_brief) joint = nullptr;
  return run_copy(is_brief, [&] { return device_put(value, sharding, committed, layout, shareable_bytes, joint); });
}

constexpr int64_t kWorthSharing = int64_t{64} << 20;  // bytes of a copy; below, sharing saves little time

bool is_brief_reshard(const Array& source, const Sharding& sharding) {
  return is_brief_copy(source.nbytes(), sharding) && is_brief_copy(source.nbytes(), *source.sharding()) &&
         is_ready(source.ready_event());
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
  return {strategy, std::move(sharding), {committed, donate, force_copy, std::move(layout), options.transport}};
}

ArrayRef place(const ArrayRef& source, const PlacementTarget& target, const PlacementOptions& options) {
  const auto [strategy, sharding, how] = plan_placement(*source, target, options);
  std::shared_ptr<const HostView> value;
  switch (strategy) {
    case PlacementStrategy::kUnchanged:
      return source;
    case PlacementStrategy::kReshard:
      return run_copy(is_brief_reshard(*source, *sharding), [&] { return reshard(source, sharding, how); });
    case PlacementStrategy::kExchange:
      return run_blocking([&] { return reshard(source, sharding, how); });
    case PlacementStrategy::kThroughHost:
      value = device_get(source);
      break;
    case PlacementStrategy::kValuePerProcess:
      value = value_of_all(source, *sharding, options.transport);
      break;
  }
  ArrayRef placed = copy_from_host(*value, sharding, how.committed, *how.layout);
  if (how.donate) source->donate();
  return placed;
}

ArrayRef place(const HostView& source, const PlacementTarget& target, const PlacementOptions& options) {
  options.check();
  if (!target.sharding)
    throw_error("{}: the target has no sharding; expected a sharding, because a host array is on no device",
                kDevicePut);
  check_placeable(*target.sharding, kDevicePut);
  const LayoutRef layout = layout_for(target, source.shape);
  check_host_transfer(source, *target.sharding, options);
  if (!target.sharding->is_fully_addressable()) check_same_everywhere(source, *target.sharding, options.transport);
  const bool shares = options.may_alias.value_or(false) && source.owner;
  if ((!shares && !options.is_shareable) || layout || !can_alias(source, *target.sharding)) {
    return copy_from_host(source, target.sharding, target.committed, layout, 0, options.joint);
  }
  if (shares) return device_put_alias(source, target.sharding, target.committed);
  const int64_t bytes = source.nbytes();
  return copy_from_host(source, target.sharding, target.committed, layout, bytes >= kWorthSharing ? bytes : 0);
}

void check_placeable(const Sharding& sharding, std::string_view operation) {
  check_has_devices(sharding, operation);
  if (sharding.is_concrete()) return;
  throw_error(
      "{}: {} leaves a dimension UNCONSTRAINED; expected None or a mesh axis for each dimension; replace UNCONSTRAINED",
      operation, sharding.to_string());
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
  std::unordered_map<const Device*, TileId> tile_of;
  for (const Position p : from.positions()) tile_of.emplace(&from.device(p), from.grid().tile(p));
  for (const Position p : target.positions()) {
    const auto found = tile_of.find(&target.device(p));
    if (found == tile_of.end() || held.domain(found->second) != wanted.domain(p)) return false;
  }
  return true;
}

}  // namespace artifex_devices
