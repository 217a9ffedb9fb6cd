// SPDX-License-Identifier: Apache-2.0
#include "failing.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace artifex_devices::faults {
namespace {

constinit std::atomic<int64_t> g_blocks{0};
constinit std::atomic<int64_t> g_bytes{0};
constinit std::atomic<int64_t> g_mapped{0};

constexpr int kNobody = -1;
constinit std::atomic<int> g_armed{kNobody};  // a Call
constinit std::atomic<int64_t> g_calls{0};
constinit std::atomic<int64_t> g_first{0};
constinit std::atomic<bool> g_and_later{false};

constinit std::atomic<std::function<void(const void*)>*> g_disturbance{nullptr};
constinit std::atomic<std::function<void()>*> g_at_refusal{nullptr};

constinit std::atomic<int> g_possible_cpus{0};  // 0: the system's own
constinit std::atomic<int> g_allowed_cpus{0};

constinit std::atomic<std::function<bool(const char*, size_t)>*> g_page_disturbance{nullptr};

bool page_call_fails(const char* name, size_t bytes) {
  const auto* disturbance = g_page_disturbance.load();
  return disturbance != nullptr && (*disturbance)(name, bytes);
}

bool fails(Call call) noexcept {
  if (g_armed.load(std::memory_order_relaxed) != static_cast<int>(call)) return false;
  const int64_t number = g_calls.fetch_add(1, std::memory_order_relaxed) + 1;
  const int64_t first = g_first.load(std::memory_order_relaxed);
  const bool fails_now = number == first || (first > 0 && number > first && g_and_later.load());
  if (const auto* disturbance = fails_now ? g_at_refusal.load() : nullptr) (*disturbance)();
  return fails_now;
}

// The size of a block is stored before it.
constexpr size_t kHead = alignof(std::max_align_t);
static_assert(kHead >= sizeof(size_t));

void* allocate(size_t bytes, size_t alignment) noexcept {
  if (fails(Call::kNew)) return nullptr;
  const size_t head = std::max(alignment, kHead);
  void* all = alignment <= kHead
                  ? std::malloc(head + bytes)
                  : std::aligned_alloc(alignment, head + (bytes + alignment - 1) / alignment * alignment);
  if (!all) return nullptr;
  std::byte* data = static_cast<std::byte*>(all) + head;
  std::memcpy(data - sizeof(size_t), &bytes, sizeof(size_t));
  g_blocks.fetch_add(1, std::memory_order_relaxed);
  g_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return data;
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* data = allocate(bytes, alignment);
  if (!data) throw std::bad_alloc();
  return data;
}

void deallocate(void* data, size_t alignment) noexcept {
  if (!data) return;
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<std::byte*>(data) - sizeof(size_t), sizeof(size_t));
  g_blocks.fetch_sub(1, std::memory_order_relaxed);
  g_bytes.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  std::free(static_cast<std::byte*>(data) - std::max(alignment, kHead));
}

}  // namespace

Failing::Failing(Call call, int64_t n, bool and_later) {
  g_calls.store(0);
  g_first.store(n);
  g_and_later.store(and_later);
  g_armed.store(static_cast<int>(call));
}

Failing::~Failing() { g_armed.store(kNobody); }

int64_t Failing::calls() const noexcept { return g_calls.load(); }

Held held() noexcept { return {g_blocks.load(), g_bytes.load(), g_mapped.load()}; }

Held held_at_rest() {
  WorkerPool::process().shutdown();
  Arena::trim_all();
  return held();
}

void before_each_copy(std::function<void(const void*)> disturbance) {
  delete g_disturbance.exchange(disturbance ? new std::function<void(const void*)>(std::move(disturbance)) : nullptr);
}

void before_each_refusal(std::function<void()> disturbance) {
  delete g_at_refusal.exchange(disturbance ? new std::function<void()>(std::move(disturbance)) : nullptr);
}

LargeSystem::LargeSystem(int possible, int allowed) {
  g_allowed_cpus.store(allowed);
  g_possible_cpus.store(possible);
}

LargeSystem::~LargeSystem() { g_possible_cpus.store(0); }

void before_each_page_call(std::function<bool(const char*, size_t)> disturbance) {
  using Disturbance = std::function<bool(const char*, size_t)>;
  delete g_page_disturbance.exchange(disturbance ? new Disturbance(std::move(disturbance)) : nullptr);
}

int64_t fail_each(const char* name, Call call, const std::function<std::string()>& work, int64_t step) {
  const std::string expected = work();
  EXPECT_EQ(work(), expected) << name;
  int64_t most = 0;
  for (const bool and_later : {false, true}) {
    for (int64_t n = 1;; n += step) {
      const Held before = held_at_rest();
      int64_t calls = 0;
      std::string outcome;
      bool is_refused = false;
      {
        std::string got;
        const Failing failing(call, n, and_later);
        try {
          got = work();
          calls = failing.calls();
        } catch (const std::bad_alloc&) {
          calls = failing.calls();
          is_refused = true;
        } catch (const OutOfMemory& error) {
          calls = failing.calls();
          g_armed.store(kNobody);
          is_refused = true;
          outcome = error.what();
        } catch (const Unavailable& error) {
          calls = failing.calls();
          g_armed.store(kNobody);
          is_refused = true;
          outcome = error.what();
        } catch (const std::exception& error) {
          calls = failing.calls();
          g_armed.store(kNobody);
          ADD_FAILURE() << name << ", call " << n << (and_later ? " and later" : "") << ": " << error.what();
          return most;
        }
        g_armed.store(kNobody);
        if (!is_refused && got != expected) {
          ADD_FAILURE() << name << ", call " << n << (and_later ? " and later" : "") << ": another value";
          return most;
        }
      }
      if (!outcome.empty() && outcome.find("memory") == std::string::npos) {
        ADD_FAILURE() << name << ", call " << n << ": no word of memory in: " << outcome;
      }
      std::string().swap(outcome);  // its memory counts
      most = std::max(most, calls);
      const Held after = held_at_rest();
      if (!(after == before)) {
        ADD_FAILURE() << name << ", call " << n << (and_later ? " and later" : "") << " of " << calls << ": "
                      << after.blocks - before.blocks << " blocks, " << after.bytes - before.bytes << " bytes, "
                      << after.mapped - before.mapped << " mapped bytes are left";
        return most;
      }
      if (work() != expected) {
        ADD_FAILURE() << name << ": another value after call " << n;
        return most;
      }
      if (calls < n) break;  // did not need the call
    }
  }
  return most;
}

}  // namespace artifex_devices::faults

using namespace artifex_devices::faults;

void* operator new(size_t bytes) { return allocate_or_throw(bytes, 0); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, 0); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* data) noexcept { deallocate(data, 0); }
void operator delete[](void* data) noexcept { deallocate(data, 0); }
void operator delete(void* data, const std::nothrow_t&) noexcept { deallocate(data, 0); }
void operator delete[](void* data, const std::nothrow_t&) noexcept { deallocate(data, 0); }
void operator delete(void* data, size_t) noexcept { deallocate(data, 0); }
void operator delete[](void* data, size_t) noexcept { deallocate(data, 0); }
void operator delete(void* data, std::align_val_t alignment) noexcept {
  deallocate(data, static_cast<size_t>(alignment));
}
void operator delete[](void* data, std::align_val_t alignment) noexcept {
  deallocate(data, static_cast<size_t>(alignment));
}
void operator delete(void* data, size_t, std::align_val_t alignment) noexcept {
  deallocate(data, static_cast<size_t>(alignment));
}
void operator delete[](void* data, size_t, std::align_val_t alignment) noexcept {
  deallocate(data, static_cast<size_t>(alignment));
}
void operator delete(void* data, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  deallocate(data, static_cast<size_t>(alignment));
}
void operator delete[](void* data, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  deallocate(data, static_cast<size_t>(alignment));
}

// What --wrap gives: the core calls __wrap_f for f, and __real_f is the system's.
extern "C" {

void* __real_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void* address, size_t bytes);
int __real_madvise(void* address, size_t bytes, int advice);
long __real_syscall(long number, ...);
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument);
int __real_sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* set);
void __real__ZNK15artifex_devices11StridedCopy3runEll(const void* copy, int64_t piece, int64_t pieces);

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (page_call_fails("mmap", bytes) || fails(Call::kMap)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* data = __real_mmap(address, bytes, protection, flags, file, offset);
  if (data != MAP_FAILED) g_mapped.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return data;
}

int __wrap_munmap(void* address, size_t bytes) {
  page_call_fails("munmap", bytes);
  g_mapped.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return __real_munmap(address, bytes);
}

int __wrap_madvise(void* address, size_t bytes, int advice) {
  if (page_call_fails("madvise", bytes) || fails(Call::kMap)) {
    errno = ENOMEM;
    return -1;
  }
  return __real_madvise(address, bytes, advice);
}

// The core locks pages by calls of its own.
// Passes on six arguments, as the kernel takes them; where a caller gave fewer, the others are what the registers hold.
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
  std::array<long, 6> arguments{};
  va_list list;
  va_start(list, number);
  for (long& each : arguments) each = va_arg(list, long);
  va_end(list);
  const auto& [a, b, c, d, e, f] = arguments;
  if ((number == SYS_mlock && page_call_fails("mlock", static_cast<size_t>(b))) ||
      (number == SYS_munlock && page_call_fails("munlock", static_cast<size_t>(b)))) {
    errno = ENOMEM;
    return -1;
  }
  return __real_syscall(number, a, b, c, d, e, f);
}

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (fails(Call::kThread)) return EAGAIN;
  return __real_pthread_create(thread, attributes, body, argument);
}

int __wrap_sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* set) {
  const auto possible = static_cast<size_t>(g_possible_cpus.load());
  if (bytes * 8 < possible) {
    errno = EINVAL;
    return -1;
  }
  const auto allowed = static_cast<size_t>(g_allowed_cpus.load());
  if (possible == 0 || allowed == 0) return __real_sched_getaffinity(thread, bytes, set);
  CPU_ZERO_S(bytes, set);
  for (size_t cpu = 0; cpu < allowed; ++cpu) CPU_SET_S(cpu, bytes, set);
  return 0;
}

// StridedCopy::run(piece, pieces)
void __wrap__ZNK15artifex_devices11StridedCopy3runEll(const void* copy, int64_t piece, int64_t pieces) {
  if (const auto* disturbance = g_disturbance.load()) (*disturbance)(*static_cast<const void* const*>(copy));
  __real__ZNK15artifex_devices11StridedCopy3runEll(copy, piece, pieces);
}
}
