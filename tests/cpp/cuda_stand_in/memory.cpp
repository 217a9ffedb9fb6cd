// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "settings.h"

namespace cuda_stand_in {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kGpuAlignment = 512;  // of cuMemAlloc

int64_t in_pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

char* map_pages(int64_t bytes, int protection) {
  void* pages = mmap(nullptr, static_cast<size_t>(in_pages(bytes)), protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
}

}  // namespace

void join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size(), 0);
  for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

uint64_t component(const Clock& clock, size_t actor) { return actor < clock.size() ? clock[actor] : 0; }

uint64_t Memory::allocate(int64_t bytes, int gpu, bool is_host, bool is_pooled) {
  static_assert(kPage % kGpuAlignment == 0);
  if (!is_host && in_use_[gpu] + bytes > settings().memory) return 0;
  char* data = map_pages(bytes, PROT_READ | PROT_WRITE);
  // Addresses of GPUs are never used again, so that old ones stay wrong.
  char* reported = is_host ? data : map_pages(bytes, PROT_NONE);
  if (data == nullptr || reported == nullptr) return 0;
  if (!is_host) in_use_[gpu] += bytes;
  const auto address = reinterpret_cast<uint64_t>(reported);
  all_[address] = {address, data, bytes, gpu, is_host, is_pooled, {}};
  return address;
}

Allocation* Memory::find(uint64_t address) {
  auto after = all_.upper_bound(address);
  if (after == all_.begin()) return nullptr;
  Allocation& found = std::prev(after)->second;
  return address < found.address + static_cast<uint64_t>(found.bytes) ? &found : nullptr;
}

void Memory::free(uint64_t address) {
  const Allocation& freed = all_.at(address);
  munmap(freed.data, static_cast<size_t>(in_pages(freed.bytes)));
  if (!freed.is_host) in_use_[freed.gpu] -= freed.bytes;
  std::erase(accessed_, address);
  all_.erase(address);
}

bool Memory::access(uint64_t address, int64_t bytes, bool is_write, size_t actor, const Clock& clock,
                    const char* function) {
  Allocation* allocation = find(address);
  const uint64_t end = address + static_cast<uint64_t>(bytes);
  if (allocation == nullptr || end > allocation->address + static_cast<uint64_t>(allocation->bytes)) {
    problem(std::string(function) + (is_write ? " writes " : " reads ") + std::to_string(bytes) +
            " bytes outside of memory that the driver knows");
    return false;
  }
  for (const Access& before : allocation->accesses) {
    const bool conflicts = before.begin < end && address < before.end && (is_write || before.is_write);
    if (!conflicts || component(clock, before.actor) >= before.time) continue;
    problem(std::string(function) + (is_write ? " writes" : " reads") + " memory that stream " +
            std::to_string(before.actor) + (before.is_write ? " writes" : " reads") +
            " at the same time: a wait is missing");
  }
  if (allocation->accesses.empty()) accessed_.push_back(allocation->address);
  allocation->accesses.push_back({address, end, is_write, actor, component(clock, actor)});
  return true;
}

bool Memory::is_idle(const Allocation& allocation, const Clock& clock) {
  return std::ranges::all_of(allocation.accesses,
                             [&](const Access& each) { return component(clock, each.actor) >= each.time; });
}

void Memory::forget(const Clock& host) {
  std::erase_if(accessed_, [&](uint64_t address) {
    auto& accesses = all_.at(address).accesses;
    std::erase_if(accesses, [&](const Access& each) { return component(host, each.actor) >= each.time; });
    return accesses.empty();
  });
}

}  // namespace cuda_stand_in
