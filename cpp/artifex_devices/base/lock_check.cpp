// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/lock_check.h"

#ifdef ARTIFEX_CHECK_LOCKS

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace artifex_devices::lock_check {
namespace {

constexpr int kMostKinds = 64;
constexpr int kMostHeld = 256;  // a fork takes two for each arena

struct Held {
  const Kind* kind;
  const void* lock;
};
// Trivially destructible: it is used while a thread ends.
thread_local std::array<Held, kMostHeld> t_held;
thread_local int t_count = 0;
thread_local bool t_is_checked_worker = false;

std::atomic<int> g_kinds{0};
std::array<std::atomic<const Kind*>, kMostKinds> g_kind{};
std::array<std::atomic<uint64_t>, kMostKinds> g_after{};  // bit j of i: j was taken while i was held
std::atomic<GilHook> g_python{nullptr};
std::atomic<ViolationHook> g_violation_hook{nullptr};

void violation(const std::string& message) {
  if (const ViolationHook hook = g_violation_hook.load(std::memory_order_relaxed)) return hook(message);
  std::fprintf(stderr, "artifex_devices: %s\n", message.c_str());
  std::abort();
}

int number_of(const Kind& kind) {
  int number = kind.number.load(std::memory_order_relaxed);
  if (number >= 0) return number;
  int made = g_kinds.fetch_add(1);
  if (made >= kMostKinds) {
    std::fprintf(stderr, "artifex_devices: more than %d names of locks; raise kMostKinds\n", kMostKinds);
    std::abort();
  }
  g_kind[static_cast<size_t>(made)].store(&kind);
  return kind.number.compare_exchange_strong(number, made) ? made : number;  // one of two threads wins
}

bool is_after(int first, int second) {
  return (g_after[static_cast<size_t>(first)].load(std::memory_order_relaxed) >> second & 1) != 0;
}

// Returns the path from `first` to `last` over locks taken under each other, or an empty one.
std::string way(int first, int last) {
  std::array<int, kMostKinds> from{};
  from.fill(-1);
  std::array<int, kMostKinds> queue{};
  size_t count = 1;
  queue[0] = last;  // from the end, because the path is built backwards
  for (size_t i = 0; i < count; ++i) {
    for (int before = 0; before < kMostKinds; ++before) {
      if (from[static_cast<size_t>(before)] >= 0 || before == last || !is_after(before, queue[i])) continue;
      from[static_cast<size_t>(before)] = queue[i];
      queue[count++] = before;
    }
  }
  if (from[static_cast<size_t>(first)] < 0) return {};
  std::string text = fmt::format("\"{}\"", g_kind[static_cast<size_t>(first)].load()->name);
  for (int each = first; each != last;) {
    each = from[static_cast<size_t>(each)];
    text += fmt::format(", then \"{}\"", g_kind[static_cast<size_t>(each)].load()->name);
  }
  return text;
}

bool has_gil() {
  const GilHook hook = g_python.load(std::memory_order_relaxed);
  return hook != nullptr && hook();
}

std::string held_names() {
  std::string text;
  for (int i = 0; i < t_count; ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", then ", t_held[static_cast<size_t>(i)].kind->name);
  }
  return text;
}

}  // namespace

void taking(const Kind& kind, const void* lock) {
  bool for_fork = kind.is_fork;
  for (int i = 0; i < t_count; ++i) for_fork = for_fork || t_held[static_cast<size_t>(i)].kind->is_fork;
  const int number = number_of(kind);
  for (int i = 0; i < t_count; ++i) {
    const Held& held = t_held[static_cast<size_t>(i)];
    if (held.lock == lock) {
      violation(fmt::format("lock order: this thread takes \"{}\" again, which it holds", kind.name));
      continue;
    }
    const int other = number_of(*held.kind);
    if (other == number) {
      if (!for_fork)
        violation(fmt::format("lock order: this thread takes a second \"{}\" while it holds one", kind.name));
      continue;
    }
    if (is_after(other, number)) continue;
    g_after[static_cast<size_t>(other)].fetch_or(uint64_t{1} << number);
    if (const std::string back = way(number, other); !back.empty()) {
      violation(
          fmt::format("lock order: this thread takes \"{}\" while it holds {}; the opposite order occurred too: {}",
                      kind.name, held_names(), back));
    }
  }
  if (kind.waits && !for_fork && has_gil()) {
    violation(
        fmt::format("GIL: this thread takes \"{}\" while it has the GIL; the thread that holds that lock may wait for "
                    "a thread that needs the GIL",
                    kind.name));
  }
}

void taken(const Kind& kind, const void* lock) {
  if (t_count == kMostHeld) {
    std::fprintf(stderr, "artifex_devices: a thread holds more than %d locks; raise kMostHeld\n", kMostHeld);
    std::abort();
  }
  t_held[static_cast<size_t>(t_count++)] = {&kind, lock};
}

void releasing(const Kind& kind, const void* lock) {
  for (int i = t_count - 1; i >= 0; --i) {
    if (t_held[static_cast<size_t>(i)].lock != lock) continue;
    for (int next = i + 1; next < t_count; ++next) {
      t_held[static_cast<size_t>(next - 1)] = t_held[static_cast<size_t>(next)];
    }
    --t_count;
    return;
  }
  violation(fmt::format("lock order: this thread releases \"{}\", which it does not hold", kind.name));
}

void waiting(const Kind& kind, const void* lock) {
  for (int i = 0; i < t_count; ++i) {
    const auto& [held, other] = t_held[static_cast<size_t>(i)];
    if (other != lock && !held->waits)
      violation(fmt::format("wait: this thread waits for others while it holds \"{}\"", held->name));
  }
  if (!has_gil()) return;
  violation(fmt::format("wait: this thread waits under \"{}\" while it has the GIL; release the GIL before the wait",
                        kind.name));
}

void waiting_for(const char* what) {
  if (!has_gil()) return;
  violation(fmt::format("wait: this thread waits for {} while it has the GIL; release the GIL before the wait", what));
}

void no_lock_held(const char* what) {
  if (t_count > 0)
    violation(fmt::format("{}: foreign code would run under a lock; this thread holds {}", what, held_names()));
}

void acquiring_gil(const char* what) {
  no_lock_held(what);
  if (t_is_checked_worker)
    violation(fmt::format("{}: a worker acquires the GIL; queue the work for another thread", what));
}

void mark_worker() noexcept { t_is_checked_worker = true; }

void set_gil_hook(GilHook hook) noexcept { g_python.store(hook); }
void set_violation_hook(ViolationHook hook) noexcept { g_violation_hook.store(hook); }

}  // namespace artifex_devices::lock_check

#endif
