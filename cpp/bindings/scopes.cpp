// SPDX-License-Identifier: Apache-2.0
#include "scopes.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/base/config.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/base_client.h"
#include "artifex_devices/device/platform.h"
#include "cpython_calls.h"
#include "gil_mutex.h"
#include "python_modules.h"
#include "python_text.h"
#include "world.h"

namespace artifex_devices::bindings {

std::atomic<bool> detail::scopes_matter{true};  // until the environment is read

namespace {

constexpr std::array<const char*, kScopedOptions> kNames = {
    "jax_transfer_guard_host_to_device",
    "jax_transfer_guard_device_to_device",
    "jax_transfer_guard_device_to_host",
    "jax_transfer_guard",
    "jax_default_device",
    "jax_enable_x64",
};
constexpr std::array<std::string_view, 3> kPlatforms = {"cpu", "gpu", "tpu"};

// A context variable holds a tuple: the value, the tuple of the scope around it (or None), and the token of the object
// that entered it.
constexpr Py_ssize_t kValue = 0;
constexpr Py_ssize_t kOuter = 1;
constexpr Py_ssize_t kOwner = 2;
std::array<PyObject*, kScopedOptions> variables{};

// Set of tokens whose object is gone after it could not leave a scope: these scopes are skipped.
PyObject* abandoned = nullptr;

constinit GilMutex g_process_mutex;  // of the process's values and requests

// The process's values: owned, or null where none is set.
std::array<PyObject*, kScopedOptions> process_values{};

PlatformRequest platforms;      // jax_platforms: comma-separated names, or empty
PlatformRequest platform_name;  // jax_platform_name
std::atomic<bool> environment_is_read{false};

size_t slot(ScopedOption option) { return static_cast<size_t>(option); }

template <size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& known, std::string_view text) {
  return std::find(known.begin(), known.end(), text) != known.end();
}

bool is_guard(ScopedOption option) { return option < ScopedOption::kDefaultDevice; }

py::object default_value(ScopedOption option) {
  if (option == ScopedOption::kEnableX64) return py::bool_(true);
  return py::none();
}

bool is_default(ScopedOption option, py::handle value) {
  if (option == ScopedOption::kEnableX64) return value.ptr() == Py_True;
  if (value.is_none()) return true;
  return is_guard(option) && value.cast<std::string_view>() == "allow";
}

void set_process_value(ScopedOption option, py::object value) {
  if (!is_default(option, value)) detail::scopes_matter.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(g_process_mutex);
  value = py::reinterpret_steal<py::object>(std::exchange(process_values[slot(option)], value.release().ptr()));
}

/// As in JAX, kGuardAll sets all three directions.
void set_process_option(ScopedOption option, const py::object& value) {
  set_process_value(option, value);
  if (option != ScopedOption::kGuardAll) return;
  for (const auto each :
       {ScopedOption::kGuardHostToDevice, ScopedOption::kGuardDeviceToDevice, ScopedOption::kGuardDeviceToHost}) {
    set_process_value(each, value);
  }
}

py::object checked_value(ScopedOption option, py::handle value, std::string_view operation) {
  const auto repr = [&] { return safe_repr(value); };
  const bool is_text = PyUnicode_Check(value.ptr()) != 0;
  if (option == ScopedOption::kEnableX64) {
    // NumPy's bools and 0 and 1 are accepted too, but not text: "False" would be true.
    if (!is_text && !value.is_none()) {
      for (const bool truth : {false, true}) {
        const int equal =
            sleeping_at_exit([&] { return PyObject_RichCompareBool(value.ptr(), truth ? Py_True : Py_False, Py_EQ); });
        if (equal < 0) {  // an array of several values raises ValueError; other errors are the object's own
          if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError)) {
            throw py::error_already_set();
          }
          PyErr_Clear();
        }
        if (equal > 0) return py::bool_(truth);
      }
    }
    throw_error("{}: jax_enable_x64 is {}; expected True or False; use {}(..., False) to narrow 64-bit data", operation,
                repr(), operation);
  }
  if (value.is_none()) return py::none();
  if (option == ScopedOption::kDefaultDevice) {
    if (py::isinstance<Device>(value) || (is_text && is_one_of(kPlatforms, value.cast<std::string_view>()))) {
      return py::reinterpret_borrow<py::object>(value);
    }
    throw_error(
        "{}: the device is {}; expected a Device, a platform (cpu, gpu, tpu) or None; take a Device from devices()",
        operation, repr());
  }
  if (!is_text || !is_one_of(kGuardLevelNames, value.cast<std::string_view>())) {
    throw_error("{}: {} is {}; expected None or one of {}; allow is the default", operation, kNames[slot(option)],
                repr(), fmt::join(kGuardLevelNames, ", "));
  }
  return py::reinterpret_borrow<py::object>(value);
}

std::optional<bool> truth_of(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::array<std::string_view, 6> kTrue = {"y", "yes", "t", "true", "on", "1"};
  constexpr std::array<std::string_view, 6> kFalse = {"n", "no", "f", "false", "off", "0"};
  if (is_one_of(kTrue, lower)) return true;
  if (is_one_of(kFalse, lower)) return false;
  return std::nullopt;
}

/// Reads all environment variables of this file, once. If one is malformed, none is used.
void read_environment() {
  if (environment_is_read.load(std::memory_order_acquire)) return;
  std::vector<std::pair<ScopedOption, py::object>> found;
  std::vector<std::string> errors;
  const auto add_error = [&](const char* variable, std::string_view text, std::string_view expected) {
    errors.push_back(fmt::format("{} is {:?}, expected {}", variable, text, expected));
  };
  const auto guard = [&](const char* variable, ScopedOption option) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return;
    if (!is_one_of(kGuardLevelNames, text)) {  // it may not be UTF-8
      return add_error(variable, text, fmt::format("one of {}", fmt::join(kGuardLevelNames, ", ")));
    }
    found.emplace_back(option, py::str(text));
  };
  // The variable for all directions first; the more specific ones override it.
  guard("JAX_TRANSFER_GUARD", ScopedOption::kGuardAll);
  guard("JAX_TRANSFER_GUARD_HOST_TO_DEVICE", ScopedOption::kGuardHostToDevice);
  guard("JAX_TRANSFER_GUARD_DEVICE_TO_DEVICE", ScopedOption::kGuardDeviceToDevice);
  guard("JAX_TRANSFER_GUARD_DEVICE_TO_HOST", ScopedOption::kGuardDeviceToHost);
  if (const char* text = std::getenv("JAX_DEFAULT_DEVICE")) {
    if (is_one_of(kPlatforms, text)) {
      found.emplace_back(ScopedOption::kDefaultDevice, py::str(text));
    } else {
      add_error("JAX_DEFAULT_DEVICE", text, "a platform: cpu, gpu or tpu");
    }
  }
  if (const char* text = std::getenv("JAX_ENABLE_X64")) {
    const auto truth = truth_of(text);
    if (!truth) add_error("JAX_ENABLE_X64", text, "true or false");
    found.emplace_back(ScopedOption::kEnableX64, py::bool_(truth.value_or(true)));
  }
  for (const char* variable : {"JAX_PLATFORMS", "JAX_PLATFORM_NAME"}) {
    const char* text = std::getenv(variable);
    if (text && std::ranges::any_of(std::string_view(text), [](char c) { return c < ' ' || c > '~'; })) {
      add_error(variable, text, "names of platforms, such as cpu");
    }
  }
  if (!errors.empty()) {
    throw_error(
        "devices: environment variables are malformed: {}; correct or unset them before the first use of a device",
        fmt::join(errors, "; "));
  }
  static constinit GilMutex mutex;  // one thread at a time uses them
  const std::lock_guard lock(mutex);
  if (environment_is_read.load(std::memory_order_relaxed)) return;
  detail::scopes_matter.store(false, std::memory_order_relaxed);
  for (auto& [option, value] : found) set_process_option(option, value);
  if (const char* text = std::getenv("JAX_PLATFORMS")) platforms = {text, "the environment variable JAX_PLATFORMS"};
  if (const char* text = std::getenv("JAX_PLATFORM_NAME")) {
    platform_name = {text, "the environment variable JAX_PLATFORM_NAME"};
  }
  environment_is_read.store(true, std::memory_order_release);
}

/// The tuple of the innermost scope, or None.
py::object frame_of(ScopedOption option) {
  PyObject* value = nullptr;
  if (PyContextVar_Get(variables[slot(option)], Py_None, &value) < 0) throw py::error_already_set();
  auto frame = py::reinterpret_steal<py::object>(value);
  while (PySet_GET_SIZE(abandoned) > 0 && !frame.is_none()) {
    const int is_abandoned = PySet_Contains(abandoned, PyTuple_GET_ITEM(frame.ptr(), kOwner));
    if (is_abandoned < 0) throw py::error_already_set();
    if (is_abandoned == 0) break;
    frame = py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(frame.ptr(), kOuter));
  }
  return frame;
}

void set_frame(ScopedOption option, py::handle frame) {
  PyObject* token = PyContextVar_Set(variables[slot(option)], frame.ptr());
  if (token == nullptr) throw py::error_already_set();
  Py_DECREF(token);
}

ScopedOption option_from_name(const std::string& name) {
  for (size_t i = 0; i < kScopedOptions; ++i) {
    if (name == kNames[i]) return static_cast<ScopedOption>(i);
  }
  throw_error("config: the core has no scoped option {:?}; expected one of {}", name, fmt::join(kNames, ", "));
}

py::object check_scope(const std::string& name, py::handle value, const std::string& operation) {
  return checked_value(option_from_name(name), value, operation);
}

void enter_scope(const std::vector<std::string>& names, const py::object& value, const py::object& owner) {
  read_environment();
  for (const std::string& name : names) {
    const ScopedOption option = option_from_name(name);
    if (option == ScopedOption::kDefaultDevice && py::isinstance<Device>(value)) {
      const auto* device = value.cast<const Device*>();
      if (&device->client() != client_of_platform(device->platform()).get()) {
        throw_error(
            "default_device: {} belongs to another world than the current one; expected a Device of the current world; "
            "take one from devices()",
            device->repr());
      }
    }
    if (!is_default(option, value)) detail::scopes_matter.store(true, std::memory_order_relaxed);
    set_frame(option, py::make_tuple(value, frame_of(option), owner));
  }
}

void leave_scope(const std::vector<std::string>& names, const py::object& owner, const std::string& operation) {
  std::vector<py::object> outer;
  for (const std::string& name : names) {
    const py::object frame = frame_of(option_from_name(name));
    if (frame.is_none() || PyTuple_GET_ITEM(frame.ptr(), kOwner) != owner.ptr()) {
      throw_error<Unavailable>(
          "{}: scopes were left in the wrong order, or in another thread than they were entered in; leave the innermost "
          "scope first, or use `with` blocks",
          operation);
    }
    outer.push_back(py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(frame.ptr(), kOuter)));
  }
  for (size_t i = 0; i < names.size(); ++i) set_frame(option_from_name(names[i]), outer[i]);
}

void write_option(const std::string& name, const py::object& value) {
  read_environment();
  const ScopedOption option = option_from_name(name);
  set_process_option(option, checked_value(option, value, "config.update"));
}

PlatformRequest& request_from_name(const std::string& name) {
  return name == "jax_platforms" ? platforms : platform_name;
}

PlatformRequest copy_of(const PlatformRequest& request) {
  const std::lock_guard lock(g_process_mutex);
  return request;
}

}  // namespace

py::object scoped_value(ScopedOption option) {
  read_environment();
  const py::object frame = frame_of(option);
  if (!frame.is_none()) {
    const py::handle value = PyTuple_GET_ITEM(frame.ptr(), kValue);
    // A guard of None means the process's level; a default device of None means the first device.
    if (!value.is_none() || !is_guard(option)) return py::reinterpret_borrow<py::object>(value);
  }
  py::object value;
  {
    const std::lock_guard lock(g_process_mutex);
    value = py::reinterpret_borrow<py::object>(process_values[slot(option)]);
  }
  return value ? value : default_value(option);
}

TransferGuards scoped_transfer_guards() {
  static_assert(static_cast<int>(ScopedOption::kGuardHostToDevice) == 0);
  static_assert(static_cast<int>(ScopedOption::kGuardDeviceToHost) == 2);
  TransferGuards guards;
  for (size_t i = 0; i < guards.levels.size(); ++i) {
    const py::object level = scoped_value(static_cast<ScopedOption>(i));
    if (!level.is_none()) guards.levels[i] = guard_level_from_name(level.cast<std::string_view>()).value();
  }
  guards.log = [](const std::string& text) { call_python(python_modules::kScopes, "_log_transfer", py::str(text)); };
  return guards;
}

bool x64_enabled() { return !scopes_matter() || scoped_value(ScopedOption::kEnableX64).ptr() == Py_True; }

Device* default_device() {
  if (scopes_matter()) {
    // A default device answers for calls that name none, so jax_platform_name need not be available.
    const py::object value = scoped_value(ScopedOption::kDefaultDevice);
    if (py::isinstance<Device>(value)) {
      auto* device = value.cast<Device*>();
      const Client* client = &device->client();
      if (client == client_of_named_platform().get() || client == client_of_platform(device->platform()).get()) {
        return device;
      }
    } else if (!value.is_none()) {
      const ClientRef named = client_of_platform(value.cast<std::string>());
      if (named) return named->default_device();
      throw_error<Unavailable>(
          "device_put: the default device is of platform {}, which is not available; expected one of: {}; set "
          "jax_default_device to a Device or None",
          value.cast<std::string_view>(), client_of_named_platform()->platform());
    }
  }
  return current_client()->default_device();
}

void check_platforms() {
  read_environment();
  use_platforms(copy_of(platforms));
}

void check_preferred_platform() {
  read_environment();
  use_platforms(copy_of(platform_name));
}

void bind_scopes(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  for (size_t i = 0; i < kScopedOptions; ++i) {
    variables[i] = PyContextVar_New(kNames[i], nullptr);
    if (variables[i] == nullptr) throw py::error_already_set();
  }
  abandoned = py::set().release().ptr();
  internal.def(
      "abandon_scope", [](const py::object& owner) { py::reinterpret_borrow<py::set>(abandoned).add(owner); },
      py::arg("owner"), "Skips the scopes of this owner from now on, in all contexts.");
  internal.def("check_scope", &check_scope, py::arg("name"), py::arg("value"), py::arg("operation"));
  internal.def("enter_scope", &enter_scope, py::arg("names"), py::arg("value"), py::arg("owner"));
  internal.def("leave_scope", &leave_scope, py::arg("names"), py::arg("owner"), py::arg("operation"));
  internal.def(
      "scoped_option", [](const std::string& name) { return scoped_value(option_from_name(name)); }, py::arg("name"));
  internal.def("write_scoped_option", &write_option, py::arg("name"), py::arg("value"));
  internal.def(
      "platform_option",
      [](const std::string& name) {
        read_environment();
        return copy_of(request_from_name(name)).names;
      },
      py::arg("name"));
  internal.def(
      "prefers_gpus",
      [] {
        read_environment();
        return prefers_gpus(copy_of(platforms)) || prefers_gpus(copy_of(platform_name));
      },
      "Returns whether jax_platforms or jax_platform_name names GPUs first.");
  internal.def(
      "write_platform_option",
      [](const std::string& name, const std::optional<std::string>& names) {
        read_environment();
        PlatformRequest request{names, fmt::format("config.update({:?})", name)};
        const std::lock_guard lock(g_process_mutex);
        std::swap(request_from_name(name), request);
      },
      py::arg("name"), py::arg("names").none(true));
  internal.def("config_read", [](const std::string& name) { return config_option(name).load(); }, py::arg("name"));
  internal.def(
      "config_write", [](const std::string& name, int64_t value) { config_option(name).store(value); }, py::arg("name"),
      py::arg("value"));
  internal.def("x64_enabled", &x64_enabled);
  internal.def("default_device", [] { return handle_of(default_device()); });
}

}  // namespace artifex_devices::bindings
