// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "pybind11_patches.h"

namespace artifex_devices::bindings {
namespace {

using Init = void (*)(py::detail::instance*, const void*);

constexpr size_t kMaxClasses = 128;

// pybind11's function for each class, and below a wrapper for each.
std::array<Init, kMaxClasses> g_unguarded{};

template <size_t kClass>
void init_guarded(py::detail::instance* instance, const void* holder) {
  try {
    g_unguarded[kClass](instance, holder);
  } catch (...) {
    if (holder == nullptr) throw;  // the Python object owns it: created by __init__, or copied by a cast
    py::detail::values_and_holders values(instance);
    auto first = values.begin();
    if (!first->holder_constructed()) instance->owned = false;
    if (!first->instance_registered()) py::detail::deregister_instance_impl(first->value_ptr(), instance);
    throw;
  }
}

template <size_t... kClasses>
constexpr std::array<Init, kMaxClasses> guarded(std::index_sequence<kClasses...>) {
  return {&init_guarded<kClasses>...};
}
constexpr std::array<Init, kMaxClasses> kGuarded = guarded(std::make_index_sequence<kMaxClasses>());

}  // namespace

void guard_casts(const py::module_& module) {
  PyTypeObject* const metaclass = py::detail::get_internals().default_metaclass;
  size_t count = 0;
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (!PyObject_TypeCheck(value.ptr(), metaclass)) continue;
    auto* type = reinterpret_cast<PyTypeObject*>(value.ptr());
    auto* info = py::detail::get_type_info(type);
    if (info == nullptr || info->type != type) continue;
    if (count == kMaxClasses)
      throw_error("guard_casts: there are more than {} classes; raise kMostClasses", kMaxClasses);
    g_unguarded[count] = info->init_instance;
    info->init_instance = kGuarded[count];
    ++count;
  }
}

}  // namespace artifex_devices::bindings
