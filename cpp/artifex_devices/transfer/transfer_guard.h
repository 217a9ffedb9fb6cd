// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace artifex_devices {

enum class TransferDirection : uint8_t { kHostToDevice, kDeviceToDevice, kDeviceToHost };

/// Reaction of a guard to the transfers of one direction. A transfer is explicit if the user asks for it by name
/// (device_put and its family), and implicit if an operation needs it.
enum class GuardLevel : uint8_t {
  kAllow,             // the default
  kLog,               // logs implicit transfers
  kDisallow,          // refuses implicit transfers
  kLogExplicit,       // logs every transfer
  kDisallowExplicit,  // refuses every transfer
};

/// JAX's names of the levels: "allow", "log", "disallow", "log_explicit", "disallow_explicit" and
/// "log_explicit_device_put", which is "log_explicit" here.
inline constexpr std::array<std::string_view, 6> kGuardLevelNames = {
    "allow", "log", "disallow", "log_explicit", "disallow_explicit", "log_explicit_device_put"};
std::optional<GuardLevel> guard_level_from_name(std::string_view name) noexcept;

/// "host-to-device" or "host_to_device", and so on. Throws InvalidArgument for other names.
TransferDirection transfer_direction_from_name(std::string_view name);
std::string_view to_string(TransferDirection direction) noexcept;  // "host-to-device"

/// The guards in force for one call: a level for each direction, and where log levels report. The caller passes them
/// in, because the core has no current guards.
struct TransferGuards {
  std::array<GuardLevel, 3> levels = {};      // by TransferDirection
  void (*log)(const std::string&) = nullptr;  // null: log levels report nothing

  GuardLevel level(TransferDirection direction) const noexcept { return levels[static_cast<size_t>(direction)]; }
};

enum class GuardVerdict : uint8_t { kAllow, kLog, kRefuse };

/// Returns the decision of the guards. Reading memory that the host can read is not a transfer (check_host_read).
/// Example: with the level "disallow" for host-to-device, an explicit transfer is allowed and an implicit one refused.
GuardVerdict guard_verdict(const TransferGuards& guards, TransferDirection direction, bool is_explicit) noexcept;

/// A transfer in words, for log lines and errors.
struct TransferDescription {
  std::string operation;  // what the user called
  std::string shape;
  std::string dtype;
  std::string source;
  std::string target;
  std::string repair = {};  // how to ask for it by name; empty for the usual way of the direction
};

/// Logs the transfer (kLog) or throws TransferGuardError (kRefuse).
void act_on_verdict(GuardVerdict verdict, const TransferGuards& guards, TransferDirection direction, bool is_explicit,
                    const TransferDescription& transfer);

/// Call it before data moves, and without a lock of the core: `guards.log` may run the caller's code. `describe()`
/// returns the TransferDescription and runs only where one is needed.
template <class Describe>
void check_transfer(const TransferGuards& guards, TransferDirection direction, bool is_explicit, Describe&& describe) {
  const GuardVerdict verdict = guard_verdict(guards, direction, is_explicit);
  if (verdict == GuardVerdict::kAllow) return;
  act_on_verdict(verdict, guards, direction, is_explicit, std::forward<Describe>(describe)());
}

}  // namespace artifex_devices
