// SPDX-License-Identifier: Apache-2.0
// A library to be preloaded, in which calls of one other library for pages or threads fail: calls of the extension
// module only, so that Python's and NumPy's own calls are never refused. test_injected_faults.py builds it.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace {

std::atomic<uintptr_t> g_begin{0}, g_end{0};  // the code of that library
std::atomic<int> g_armed{-1};
std::atomic<long> g_calls{0}, g_first{0};
std::atomic<bool> g_and_later{false};

enum Kind { kMap, kThread };

bool is_theirs(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  return at >= g_begin.load(std::memory_order_relaxed) && at < g_end.load(std::memory_order_relaxed);
}

bool fails(Kind kind, const void* caller) {
  if (g_armed.load(std::memory_order_relaxed) != kind || !is_theirs(caller)) return false;
  const long number = g_calls.fetch_add(1) + 1;
  const long first = g_first.load();
  return number == first || (first > 0 && number > first && g_and_later.load());
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define CALLER __builtin_return_address(0)

extern "C" {

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (fails(kMap, CALLER)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  static const auto system = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  return system(address, bytes, protection, flags, file, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) noexcept {
  if (fails(kThread, CALLER)) return EAGAIN;
  static const auto system =
      next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return system(thread, attributes, body, argument);
}

/// Whose calls count: those from [begin, end).
void short_of_watch(uintptr_t begin, uintptr_t end) {
  g_begin.store(begin);
  g_end.store(end);
}

/// From now on call number n fails (from 1; 0: none does), with `and_later` those after it too.
void short_of_arm(int kind, long n, int and_later) {
  g_calls.store(0);
  g_first.store(n);
  g_and_later.store(and_later != 0);
  g_armed.store(kind);
}

/// No longer; how many calls there were.
long short_of_disarm() {
  g_armed.store(-1);
  return g_calls.load();
}
}
