// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/gpu_share.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../base/message_of.h"
#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

using Shares = std::vector<std::vector<int>>;

TEST(GpuShare, ProcessesThatSeeTheSameGpusDivideThem) {
  const std::vector<std::string> four = {"p", "q", "r", "s"};
  EXPECT_EQ(plan_gpu_shares({{"a", four}}), (Shares{{0, 1, 2, 3}}));
  EXPECT_EQ(plan_gpu_shares({{"a", four}, {"a", four}}), (Shares{{0, 1}, {2, 3}}));
  EXPECT_EQ(plan_gpu_shares({{"a", four}, {"a", four}, {"a", four}}), (Shares{{0, 1}, {2}, {3}}));
  EXPECT_EQ(plan_gpu_shares({{"a", four}, {"b", four}, {"a", four}}), (Shares{{0, 1}, {0, 1, 2, 3}, {2, 3}}));
}

TEST(GpuShare, ProcessesThatSeeOthersTakeAll) {
  EXPECT_EQ(plan_gpu_shares({{"a", {"p"}}, {"a", {"q", "r"}}}), (Shares{{0}, {0, 1}}));
}

TEST(GpuShare, ChosenOnesAreTakenAndTheOthersDivideAll) {
  const std::vector<std::string> two = {"p", "q"};
  const std::vector<GpuPlace> places = {{"a", two, std::vector{1, 0}}, {"a", two}, {"a", two}, {"b", two}};
  const Shares shares = plan_gpu_shares(places);
  EXPECT_EQ(shares, (Shares{{1, 0}, {0}, {1}, {0, 1}}));
  const std::vector<SharedGpu> shared = shared_gpus(places, shares);
  ASSERT_EQ(shared.size(), 2);
  EXPECT_EQ(shared[0].gpu, "p");
  EXPECT_EQ(shared[0].processes, (std::vector<int>{0, 1}));
  EXPECT_EQ(shared[1].gpu, "q");
  EXPECT_EQ(shared[1].processes, (std::vector<int>{0, 2}));
}

TEST(GpuShare, RefusesWhatGivesAProcessNoGpu) {
  EXPECT_EQ(message_of([] { plan_gpu_shares({{"a", {"p"}}, {"b", {}}}); }),
            "distributed.initialize: process 1 sees no GPU; expected at least one, as JAX_PLATFORMS asks for GPUs; "
            "check CUDA_VISIBLE_DEVICES there, or leave JAX_PLATFORMS out");
  EXPECT_EQ(message_of([] { plan_gpu_shares({{"a", {"p"}}, {"a", {"p"}}}); }),
            "distributed.initialize: 2 processes of one machine see 1 GPU; expected at least as many GPUs; start fewer "
            "processes, or let them share GPUs by distributed.initialize(local_device_ids=0)");
  EXPECT_EQ(
      message_of([] { plan_gpu_shares({{"a", {"p", "q"}, std::vector{2}}}); }),
      "distributed.initialize: local_device_ids names GPU 2 in process 0; expected 0 to 1, the GPUs that it sees; "
      "correct it, or leave it out");
}

}  // namespace
}  // namespace artifex_devices
