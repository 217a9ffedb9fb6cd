// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <type_traits>
#include <utility>

namespace artifex_devices {

/// Runs `work(argument)` with the lock of an interpreter dropped if the thread has it. Exceptions of the work pass.
using BlockingCallHook = void (*)(void (*work)(void*), void* argument);

/// Installed by the bindings.
void set_blocking_call_hook(BlockingCallHook hook) noexcept;

/// Runs work that may block, where the caller may have the lock of an interpreter.
void run_blocking(void (*work)(void*), void* argument);

/// The same for any function; returns its result.
template <class Work>
std::invoke_result_t<Work&> run_blocking(Work&& work) {
  using Result = std::invoke_result_t<Work&>;
  if constexpr (std::is_void_v<Result>) {
    run_blocking([](void* own) { (*static_cast<std::remove_reference_t<Work>*>(own))(); }, &work);
  } else {
    std::optional<Result> result;
    auto run = [&] { result.emplace(work()); };
    run_blocking([](void* own) { (*static_cast<decltype(run)*>(own))(); }, &run);
    return std::move(*result);
  }
}

}  // namespace artifex_devices
