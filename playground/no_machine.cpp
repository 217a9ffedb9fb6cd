// SPDX-License-Identifier: Apache-2.0
// Stand-ins for what a page lacks: threads, memory of devices, the caches and cores of a machine. Devices that are
// compile-only never use them; the linker needs them.
#include <memory>

#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/allocator_options.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/deferred_executor.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/topology/binding.h"
#include "artifex_devices/topology/machine_objects.h"

namespace artifex_devices {
namespace {

[[noreturn]] void fail() {
  throw_error<Unavailable>("playground: devices of a page have no memory; expected a plan; run it in Python");
}

}  // namespace

/// Clients hold the addresses of arenas. Nobody reads what is there.
Arena& Arena::of_node(int, MemoryKind, bool) {
  alignas(Arena) static std::byte nothing[sizeof(Arena)];
  return reinterpret_cast<Arena&>(nothing);
}

void AllocatorOptions::check_for_cpu(std::string_view) const { fail(); }
bool WorkerPool::configure(std::vector<Lane>) { fail(); }
std::shared_ptr<const Machine> Machine::live() { fail(); }
int64_t last_level_cache_bytes(const Machine&, const CpuSet&) { fail(); }
bool bind_this_thread(const Machine&, const CpuSet&) noexcept { return false; }
void set_stream_bytes(int64_t) noexcept {}

bool WorkerPoolExecutor::is_inline(int64_t, bool) const noexcept { return true; }
void WorkerPoolExecutor::run(CopyBatch&) { fail(); }
EventRef WorkerPoolExecutor::submit(std::shared_ptr<CopyBatch>, const EventRef&) { fail(); }
void EngineExecutor::copy_here(const CopyBatch&) const { fail(); }
std::vector<WorkerPool::Work> EngineExecutor::begin(CopyBatch&) const { fail(); }
EventRef BlockingExecutor::submit(std::shared_ptr<CopyBatch>, const EventRef&) { fail(); }
DeferredExecutor::DeferredExecutor(uint64_t, std::shared_ptr<WorkerPoolExecutor>) { fail(); }
EventRef DeferredExecutor::submit(std::shared_ptr<CopyBatch>, const EventRef&) { fail(); }
void DeferredExecutor::finish() {}
void CopyBatch::copy() const { fail(); }
std::vector<WorkerPool::Work> CopyBatch::cut() { fail(); }

}  // namespace artifex_devices
