// SPDX-License-Identifier: Apache-2.0
#include "transfer_guard.h"

#include <array>
#include <unordered_map>

#include "artifex_devices/base/throw_error.h"
#include "python_modules.h"

namespace artifex_devices::bindings {
namespace {

constexpr std::array<std::string_view, 3> kDirections = {"host-to-device", "device-to-device", "device-to-host"};
constexpr std::array<std::string_view, 3> kWords = {"host_to_device", "device_to_device", "device_to_host"};

std::string level_of(TransferDirection direction) {
  const py::object level = scoped_value(static_cast<ScopedOption>(direction));
  return level.is_none() ? "allow" : level.cast<std::string>();
}

TransferDirection direction_from_text(std::string_view text) {
  for (size_t i = 0; i < kDirections.size(); ++i) {
    if (text == kDirections[i] || text == kWords[i]) return static_cast<TransferDirection>(i);
  }
  throw_error("check_transfer: direction is {:?}; expected one of {}; write it so", text, fmt::join(kDirections, ", "));
}

std::string text_of(py::handle object) { return py::str(object).cast<std::string>(); }

}  // namespace

GuardVerdict guard_verdict(TransferDirection direction, bool is_explicit) {
  static_assert(static_cast<int>(ScopedOption::kGuardHostToDevice) == 0);
  static_assert(static_cast<int>(ScopedOption::kGuardDeviceToHost) == 2);
  if (direction == TransferDirection::kDeviceToHost) return GuardVerdict::kAllow;
  const std::string level = level_of(direction);
  if (level == "disallow_explicit") return GuardVerdict::kRefuse;
  if (level.starts_with("log_explicit")) return GuardVerdict::kLog;
  if (is_explicit || level == "allow") return GuardVerdict::kAllow;
  return level == "log" ? GuardVerdict::kLog : GuardVerdict::kRefuse;
}

void act_on_verdict(GuardVerdict verdict, TransferDirection direction, bool is_explicit, const TransferText& text) {
  const auto i = static_cast<size_t>(direction);
  const std::string what = fmt::format("{} {} transfer of a {} {} from {} to {}", is_explicit ? "explicit" : "implicit",
                                       kDirections[i], text.shape, text.dtype, text.source, text.target);
  if (verdict == GuardVerdict::kLog) {
    py::module_::import(python_modules::kScopes).attr("_log_transfer")(text.operation + ": " + what);
    return;
  }
  const std::string level = level_of(direction);
  throw_error<TransferGuardError>(
      "{}: disallowed {}; expected {}, got the guard level {:?}; {}put it under `with transfer_guard_{}(\"allow\"):`",
      text.operation, what, is_explicit ? "a level that lets explicit transfers pass" : "an explicit transfer", level,
      is_explicit ? "" : "move the data by device_put first, or ", kWords[i]);
}

bool lies_there(const Array& source, const Sharding& target) {
  const Sharding& from = *source.sharding();
  if (target.is_equivalent_to(from, source.rank())) return true;
  if (target.devices()->client() != from.devices()->client() || target.memory_kind() != from.memory_kind()) {
    return false;
  }
  const ShardDomains held = from.domains(source.shape(), "device_put");
  const ShardDomains wanted = target.domains(source.shape(), "device_put");
  std::unordered_map<const Device*, int64_t> tile_of;
  for (int64_t p = 0; p < from.num_devices(); ++p) tile_of.emplace((*from.devices())[p], from.grid().tile(p));
  for (int64_t p = 0; p < target.num_devices(); ++p) {
    const auto found = tile_of.find((*target.devices())[p]);
    if (found == tile_of.end() || held.domain(found->second) != wanted.domain(target.grid().tile(p))) return false;
  }
  return true;
}

void bind_transfer_guard(py::module_& module) {
  module.def(
      "_check_transfer",
      [](const std::string& direction, bool is_explicit, const py::object& shape, const py::object& dtype,
         const py::object& source, const py::object& target, const std::string& operation) {
        check_transfer(direction_from_text(direction), is_explicit, [&] {
          return TransferText{operation, text_of(shape), text_of(dtype), text_of(source), text_of(target)};
        });
      },
      py::arg("direction"), py::arg("explicit"), py::arg("shape"), py::arg("dtype"), py::arg("source"),
      py::arg("target"), py::arg("operation") = "transfer",
      R"(To be called before data moves: raises TransferGuardError or logs, as the guards of this context say.

Args:
    direction: "host_to_device", "device_to_device" or "device_to_host".
    explicit: Whether the user asked for the transfer by name (the device_put family).
    shape, dtype, source, target: For the message; made text only when one is needed.
    operation: What the user called.
)");
  module.def(
      "_transfer_is_guarded",
      [](const std::string& direction, bool is_explicit) {
        return scopes_matter() && guard_verdict(direction_from_text(direction), is_explicit) != GuardVerdict::kAllow;
      },
      py::arg("direction"), py::arg("explicit"));
}

}  // namespace artifex_devices::bindings
