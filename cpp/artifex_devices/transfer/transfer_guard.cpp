// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/transfer_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr std::array<std::string_view, 3> kDirections = {"host-to-device", "device-to-device", "device-to-host"};
constexpr std::array<std::string_view, 3> kOptionSuffixes = {"host_to_device", "device_to_device", "device_to_host"};

std::string_view name_of(GuardLevel level) { return kGuardLevelNames[static_cast<size_t>(level)]; }

}  // namespace

std::optional<GuardLevel> guard_level_from_name(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kGuardLevelNames, name);
  if (found == kGuardLevelNames.end()) return std::nullopt;
  if (found == kGuardLevelNames.end() - 1) return GuardLevel::kLogExplicit;  // the alias
  return static_cast<GuardLevel>(found - kGuardLevelNames.begin());
}

TransferDirection transfer_direction_from_name(std::string_view name) {
  for (size_t i = 0; i < kDirections.size(); ++i) {
    if (name == kDirections[i] || name == kOptionSuffixes[i]) return static_cast<TransferDirection>(i);
  }
  throw_error("check_transfer: direction is {:?}; expected one of {}", name, fmt::join(kDirections, ", "));
}

std::string_view to_string(TransferDirection direction) noexcept { return kDirections[static_cast<size_t>(direction)]; }

GuardVerdict guard_verdict(const TransferGuards& guards, TransferDirection direction, bool is_explicit) noexcept {
  switch (guards.level(direction)) {
    case GuardLevel::kAllow:
      break;
    case GuardLevel::kLog:
      return is_explicit ? GuardVerdict::kAllow : GuardVerdict::kLog;
    case GuardLevel::kDisallow:
      return is_explicit ? GuardVerdict::kAllow : GuardVerdict::kRefuse;
    case GuardLevel::kLogExplicit:
      return GuardVerdict::kLog;
    case GuardLevel::kDisallowExplicit:
      return GuardVerdict::kRefuse;
  }
  return GuardVerdict::kAllow;
}

void act_on_verdict(GuardVerdict verdict, const TransferGuards& guards, TransferDirection direction, bool is_explicit,
                    const TransferDescription& transfer) {
  const auto i = static_cast<size_t>(direction);
  const std::string what =
      fmt::format("{} {} transfer of a {} {} from {} to {}", is_explicit ? "explicit" : "implicit", kDirections[i],
                  transfer.shape, transfer.dtype, transfer.source, transfer.target);
  if (verdict == GuardVerdict::kLog) {
    if (guards.log != nullptr) guards.log(transfer.operation + ": " + what);
    return;
  }
  std::string repair = transfer.repair;
  if (repair.empty()) {
    const bool is_read = direction == TransferDirection::kDeviceToHost;
    repair = is_read ? "read it by device_get" : "move the data by device_put first";
  }
  throw_error<TransferGuardError>(
      "{}: disallowed {}; expected {}, got the guard level {:?}; {}put it under `with transfer_guard_{}(\"allow\"):`",
      transfer.operation, what, is_explicit ? "a level that allows explicit transfers" : "an explicit transfer",
      name_of(guards.level(direction)), is_explicit ? "" : repair + ", or ", kOptionSuffixes[i]);
}

}  // namespace artifex_devices
