// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/gpus.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <mutex>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cuda/strided_kernel_ptx.h"

namespace artifex_devices::cuda {
namespace {

constexpr std::string_view kDevices = "devices";

using Gpus = std::vector<std::atomic<const Gpu*>>;  // by ordinal; null: without a context
constinit std::atomic<Gpus*> g_gpus{nullptr};       // never freed

GpuFacts read_facts(const Driver& driver, int ordinal) {
  GpuFacts facts;
  driver.check(driver.device(&facts.handle, ordinal), kDevices, "cuDeviceGet");
  std::array<char, 256> text{};
  constexpr int kLength = static_cast<int>(text.size()) - 1;
  driver.check(driver.device_name(text.data(), kLength, facts.handle), kDevices, "cuDeviceGetName");
  facts.name = text.data();
  text = {};
  driver.check(driver.device_pci_address(text.data(), kLength, facts.handle), kDevices, "cuDeviceGetPCIBusId");
  facts.pci_address = text.data();
  std::ranges::transform(facts.pci_address, facts.pci_address.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  size_t bytes = 0;
  driver.check(driver.device_memory(&bytes, facts.handle), kDevices, "cuDeviceTotalMem");
  facts.memory_bytes = static_cast<int64_t>(bytes);
  const auto attribute = [&](int which) {
    int value = 0;
    driver.check(driver.device_attribute(&value, which, facts.handle), kDevices, "cuDeviceGetAttribute");
    return value;
  };
  facts.compute_capability = attribute(kComputeMajor) * 10 + attribute(kComputeMinor);
  facts.has_pools = attribute(kMemoryPoolsSupported) != 0;
  facts.max_pitch = attribute(kMaxPitch);
  return facts;
}

}  // namespace

int gpu_count(const Driver& driver) {
  int count = 0;
  driver.check(driver.device_count(&count), kDevices, "cuDeviceGetCount");
  return count;
}

std::vector<GpuFacts> read_gpu_facts(const Driver& driver) {
  const int count = gpu_count(driver);
  std::vector<GpuFacts> all;
  for (int ordinal = 0; ordinal < count; ++ordinal) all.push_back(read_facts(driver, ordinal));
  return all;
}

Gpu::Gpu(const Driver& driver, int ordinal, GpuFacts facts) : ordinal_(ordinal), facts_(std::move(facts)) {
  driver.check(driver.retain_context(&context_, facts_.handle), kDevices, "cuDevicePrimaryCtxRetain");
  const ContextScope scope(driver, *this, kDevices);
  for (Stream* stream : {&from_host_, &to_host_, &within_}) {
    driver.check(driver.create_stream(stream, kNonBlockingStream), kDevices, "cuStreamCreate");
  }
}

EventHandle Gpu::take_event(const Driver& driver) const {
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      const EventHandle event = events_.back();
      events_.pop_back();
      return event;
    }
    events_.reserve(events_.capacity() + 1);  // so that give_event cannot fail
  }
  EventHandle event = nullptr;
  driver.check(driver.create_event(&event, kBlockingSync | kDisableTiming), kDevices, "cuEventCreate");
  return event;
}

void Gpu::give_event(EventHandle event) const noexcept {
  const std::lock_guard lock(mutex_);
  if (events_.size() < events_.capacity()) events_.push_back(event);
}

Function Gpu::strided_kernel(const Driver& driver, int log2_bytes) const {
  const std::lock_guard lock(kernels_mutex_);
  if (kernels_[0] == nullptr) {
    Module module = nullptr;
    driver.check(driver.load_module(&module, kStridedKernelPtx), "copy", "cuModuleLoadData");
    std::array<Function, 5> found{};
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string name = fmt::format("strided_copy_{}", 1 << i);
      driver.check(driver.find_function(&found[i], module, name.c_str()), "copy", "cuModuleGetFunction");
    }
    kernels_ = found;
  }
  return kernels_[static_cast<size_t>(log2_bytes)];
}

void Gpu::add_exported(uint64_t begin, int64_t bytes) const {
  const std::lock_guard lock(exported_mutex_);
  exported_[begin] = begin + static_cast<uint64_t>(bytes);
  has_exported_.store(true, std::memory_order_release);
}

void Gpu::remove_exported(uint64_t begin) const noexcept {
  if (!has_exported_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(exported_mutex_);
  exported_.erase(begin);
  has_exported_.store(!exported_.empty(), std::memory_order_release);
}

bool Gpu::is_exported(uint64_t address) const noexcept {
  if (!has_exported_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(exported_mutex_);
  const auto after = exported_.upper_bound(address);
  return after != exported_.begin() && address < std::prev(after)->second;
}

void Gpu::enable_peer(const Driver& driver, const Gpu& peer) const {
  {
    const std::lock_guard lock(mutex_);
    const auto at = static_cast<size_t>(peer.ordinal());
    if (peers_.size() <= at) peers_.resize(at + 1, false);
    if (peers_[at]) return;
    peers_[at] = true;
  }
  int can = 0;
  driver.check(driver.can_access_peer(&can, facts_.handle, peer.facts_.handle), kDevices, "cuDeviceCanAccessPeer");
  if (can == 0) return;  // the driver stages these copies
  const ContextScope scope(driver, *this, kDevices);
  // Another library may have enabled it. Other errors only make the copies slower.
  static_cast<void>(driver.enable_peer(peer.context(), 0));
}

const Gpu& gpu_of(const Driver& driver, int ordinal) {
  Gpus* gpus = g_gpus.load(std::memory_order_acquire);
  if (gpus == nullptr) {
    auto made = std::make_unique<Gpus>(static_cast<size_t>(gpu_count(driver)));
    if (g_gpus.compare_exchange_strong(gpus, made.get(), std::memory_order_acq_rel)) gpus = made.release();
  }
  std::atomic<const Gpu*>& known = (*gpus)[static_cast<size_t>(ordinal)];
  const Gpu* found = known.load(std::memory_order_acquire);
  if (found == nullptr) {
    auto made = std::make_unique<const Gpu>(driver, ordinal, read_facts(driver, ordinal));
    // If another thread was faster, it has the same context.
    if (known.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) found = made.release();
  }
  return *found;
}

}  // namespace artifex_devices::cuda
