// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU while the host has none: on the stand-in for CUDA's driver, which ends the process on misuse.
#include "artifex_devices/device/cuda/cuda_memory.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "artifex_devices/device/cuda/driver.h"
#include "artifex_devices/device/cuda/gpus.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

CudaMemory& memory_of(AllocatorKind allocator) {
  setenv("ARTIFEX_CUDA_LIBRARY", ARTIFEX_CUDA_STAND_IN, 0);
  setenv("CUDA_STAND_IN", "gpus=1", 0);
  cuda::DriverProblem problem;
  const cuda::Driver* driver = cuda::find_driver(&problem);
  EXPECT_NE(driver, nullptr) << problem.what;
  return CudaMemory::of(cuda::gpu_of(*driver, 0), MemoryKind::kDevice, allocator);
}

TEST(CudaMemoryWithoutHostMemory, ReleasesBlocksInAnyOrderWithoutAllocating) {
  CudaMemory& memory = memory_of(AllocatorKind::kBfc);
  memory.trim();
  ASSERT_EQ(memory.stats().bytes_mapped, 0);
  // Neighbours before, after, on both sides, and none, are free at the releases.
  for (const std::vector<size_t>& order : std::vector<std::vector<size_t>>{
           {0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}, {3, 1, 2, 0}, {0, 3, 2, 1}}) {
    std::vector<BlockRef> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(memory.allocate((i + 1) * kMiB));
    EXPECT_EQ(memory.stats().bytes_in_use, 10 * kMiB);
    {
      const Failing failing(Call::kNew, 1, true);
      for (const size_t i : order) blocks[i] = BlockRef();
      EXPECT_EQ(failing.calls(), 0);
    }
    EXPECT_EQ(memory.stats().bytes_in_use, 0);
    EXPECT_EQ(memory.stats().bytes_mapped, 32 * kMiB);
    const BlockRef all = memory.allocate(32 * kMiB);  // the free parts are one again
    EXPECT_EQ(memory.stats().bytes_mapped, 32 * kMiB);
  }
  memory.trim();
  EXPECT_EQ(memory.stats().bytes_mapped, 0);
}

TEST(CudaMemoryWithoutHostMemory, AllocatesOrHasAsMuchAsBefore) {
  CudaMemory& memory = memory_of(AllocatorKind::kBfc);
  memory.trim();
  const auto in_use = [&] {
    const MemorySpaceStats now = memory.stats();
    return fmt::format("{} {}", now.bytes_in_use, now.bytes_preallocated);
  };
  EXPECT_GT(fail_each("blocks of a GPU", Call::kNew,
                      [&] {
                        const BlockRef small = memory.allocate(1000);
                        const BlockRef large = memory.allocate(40 * kMiB);
                        const std::string held = in_use();
                        memory.trim();
                        return held;
                      }),
            0);
  EXPECT_EQ(in_use(), "0 0");
  memory.trim();
  EXPECT_EQ(memory.stats().bytes_mapped, 0);
  EXPECT_GT(fail_each("preallocated memory of a GPU", Call::kNew,
                      [&] {
                        const std::shared_ptr<void> reserved = memory.preallocate(64 * kMiB, "test");
                        const BlockRef block = memory.allocate(3 * kMiB);
                        return in_use();
                      }),
            0);
  EXPECT_EQ(in_use(), "0 0");
  memory.trim();
  EXPECT_EQ(memory.stats().bytes_mapped, 0);
}

TEST(CudaMemoryWithoutHostMemory, KeepsABlockThatCouldNotBeMarkedAsKnownToOthers) {
  CudaMemory& memory = memory_of(AllocatorKind::kBfc);
  const BlockRef block = memory.allocate(kMiB);
  {
    const Failing failing(Call::kNew, 1, false);
    EXPECT_THROW(block->mark_as_exported(), std::bad_alloc);
  }
  block->mark_as_exported();
  cuda::DriverProblem problem;
  EXPECT_TRUE(cuda::gpu_of(*cuda::find_driver(&problem), 0).is_exported(block->address()));
}

}  // namespace
}  // namespace artifex_devices::faults
