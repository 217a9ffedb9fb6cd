// SPDX-License-Identifier: Apache-2.0
// A system that is short of something: the n-th call for memory, pages or threads fails. This program's operator new is
// one that can (failing.cpp); calls of the core to the system come by way of the linker (--wrap in CMakeLists.txt), so
// that the library itself has nothing of it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/cpu/arena.h"

namespace artifex_devices::faults {

enum class Call : uint8_t {
  kNew,     // operator new of any kind
  kMap,     // mmap, madvise and mlock of the core
  kThread,  // pthread_create of the core
};

/// While it lives, the n-th call of that kind fails (from 1; 0: none does), in any thread; with `and_later` those after
/// it too. One at a time.
class Failing {
 public:
  Failing(Call call, int64_t n, bool and_later);
  ~Failing();
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;
  /// How many calls there were so far.
  int64_t calls() const noexcept;
};

/// What this process holds: blocks and bytes of operator new, bytes that the core has mapped.
struct Held {
  int64_t blocks = 0;
  int64_t bytes = 0;
  int64_t mapped = 0;
  friend bool operator==(const Held&, const Held&) = default;
};
Held held() noexcept;
/// The same at rest: workers have ended, so that nothing is let go any more, and nothing is cached.
Held held_at_rest();

/// Runs before each call that fails. Nothing: none is.
void before_each_refusal(std::function<void()> disturbance);

/// While it lives, the system has `possible` CPUs, and as Linux does there it refuses shorter sets of CPUs. Threads may
/// run on the first `allowed` of them; 0: on those on which they may run here.
class LargeSystem {
 public:
  LargeSystem(int possible, int allowed);
  ~LargeSystem();
  LargeSystem(const LargeSystem&) = delete;
  LargeSystem& operator=(const LargeSystem&) = delete;
};

/// Every piece of a copy that the core makes first runs this, on the thread and with the address that it writes to.
/// Nothing: copies are not disturbed.
void before_each_copy(std::function<void(const void*)> disturbance);

/// Each system call of the core for pages first runs this, with its name ("mmap", "munmap", "madvise", "mlock",
/// "munlock") and its bytes; the call fails if it returns true. An empty
/// function does not disturb calls.
void before_each_page_call(std::function<bool(const char* name, size_t bytes)> disturbance);

/// `work` returns its result, as bytes that are equal each time, and releases everything else. Runs it with call 1, 2,
/// ... failing until none does, and each time expects:
/// - that value; or std::bad_alloc; or OutOfMemory or Unavailable, with a message,
/// - and then nothing newly held, and the value in the next try.
/// Returns how many calls could fail. `step`: tries every `step`-th call only, for work of many
/// thousand calls.
int64_t fail_each(const char* name, Call call, const std::function<std::string()>& work, int64_t step = 1);

}  // namespace artifex_devices::faults
