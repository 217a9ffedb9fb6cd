// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/cuda/cuda_backend.h"

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/device/cuda/cuda_copies.h"
#include "artifex_devices/device/cuda/cuda_memory.h"

namespace artifex_devices {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(const cuda::Driver& driver, int64_t devices_per_gpu, const std::vector<int>& ordinals)
      : devices_per_gpu_(devices_per_gpu) {
    for (const int ordinal : ordinals) gpus_.push_back(&cuda::gpu_of(driver, ordinal));
    if (!ordinals.empty()) return;
    const int count = cuda::gpu_count(driver);
    for (int ordinal = 0; ordinal < count; ++ordinal) gpus_.push_back(&cuda::gpu_of(driver, ordinal));
  }

  const std::string& platform() const noexcept override { return platform_; }
  const std::string& device_kind(int64_t local_device) const noexcept override { return facts(local_device).name; }
  std::optional<int64_t> device_count() const noexcept override { return static_cast<int64_t>(gpus_.size()); }
  std::string repr(const Device& device) const override {
    return fmt::format("CudaDevice(id={})", device.id().number());
  }

  bool has_own_memory() const noexcept override { return true; }
  MemorySpace& device_space(int64_t local_device, int, AllocatorKind allocator) const override {
    return CudaMemory::of(gpu(local_device), MemoryKind::kDevice, allocator);
  }
  MemorySpace* pinned_space(int64_t local_device) const override {
    return &CudaMemory::of(gpu(local_device), MemoryKind::kPinnedHost, AllocatorKind::kDefault);
  }
  bool is_host_readable() const noexcept override { return false; }
  std::optional<int64_t> memory_bytes(int64_t local_device) const noexcept override {
    return facts(local_device).memory_bytes / devices_per_gpu_;
  }
  const CopyEngine* copy_engine() const noexcept override { return &copies_; }

  void check(const Machine&, int64_t count, const ClientOptions& options) const override {
    const auto most = static_cast<int64_t>(gpus_.size()) * devices_per_gpu_;
    const bool fits = options.processes.empty() ? count <= most : options.num_devices <= most;
    if (!fits || options.compile_only) {
      throw_error(
          "make_client: {} CUDA devices{} are requested; expected 1 to {}, the GPUs of this machine; use "
          "simulate(\"8 x h100\") for others",
          count, options.compile_only ? " without memory" : "", most);
    }
    if (options.seed) {
      throw_error(
          "make_client: seed {} is given for CUDA devices, whose driver runs the copies; expected CPU devices or "
          "emulated GPUs; leave the seed out",
          *options.seed);
    }
    if (!options.allocator) return;
    options.allocator->check("make_client");
    const AllocatorKind kind = options.allocator->kind;
    if (options.allocator->preallocate && (kind == AllocatorKind::kPlatform || kind == AllocatorKind::kCudaAsync)) {
      throw_error(
          "make_client: the allocator kind {} takes each block from the driver, so none can be preallocated; expected "
          "preallocate=False or the kind BFC, got preallocate=True; change one of them",
          to_string(kind));
    }
  }

 private:
  const cuda::Gpu& gpu(int64_t local_device) const noexcept {
    return *gpus_[static_cast<size_t>(local_device) % gpus_.size()];
  }
  const cuda::GpuFacts& facts(int64_t local_device) const noexcept { return gpu(local_device).facts(); }

  std::string platform_ = "gpu";
  std::vector<const cuda::Gpu*> gpus_;  // of the devices, in order
  int64_t devices_per_gpu_;
  CudaCopies copies_;
};

}  // namespace

CudaReport cuda_report() {
  CudaReport report;
  cuda::DriverProblem problem;
  const cuda::Driver* driver = cuda::find_driver(&problem);
  if (driver == nullptr) {
    report.problem = problem.what;
    report.fix = problem.fix;
    return report;
  }
  report.library = driver->library;
  report.driver_version = driver->version;
  try {
    report.gpus = cuda::read_gpu_facts(*driver);
    report.is_usable = true;
  } catch (const Unavailable& error) {
    report.problem = error.what();
    report.fix = "check that nvidia-smi works";
  }
  return report;
}

BackendRef make_cuda_backend(int64_t devices_per_gpu, const std::vector<int>& ordinals) {
  cuda::DriverProblem problem;
  if (const cuda::Driver* driver = cuda::find_driver(&problem)) {
    return std::make_shared<CudaBackend>(*driver, devices_per_gpu, ordinals);
  }
  throw_error<Unavailable>("devices: CUDA is not usable: {}; expected a GPU with NVIDIA's driver; {}", problem.what,
                           problem.fix);
}

}  // namespace artifex_devices
