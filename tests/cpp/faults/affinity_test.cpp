// SPDX-License-Identifier: Apache-2.0
// Systems of more CPUs than a cpu_set_t has.
#include "artifex_devices/base/affinity.h"

#include <numeric>

#include "../base/forked_child.h"
#include "../transfer/host_arrays.h"
#include "artifex_devices/measure/lane_rate.h"
#include "artifex_devices/topology/cpu_share.h"
#include "artifex_devices/topology/loaded_machine.h"
#include "failing.h"

namespace artifex_devices::faults {
namespace {

std::vector<int> first_cpus(int count) {
  std::vector<int> cpus(static_cast<size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

TEST(LargeSystems, ReportAllCpusInTheMask) {
  const AffinityMask here;
  for (const int possible : {1024, 1025, 2048, 1 << 16}) {
    SCOPED_TRACE(possible);
    {
      const LargeSystem system(possible, possible);
      EXPECT_EQ(AffinityMask().count(), possible);
      EXPECT_EQ(affinity_cpus().cpus, first_cpus(possible));
    }
    const LargeSystem system(possible, 0);
    EXPECT_EQ(AffinityMask().count(), here.count());
  }
}

TEST(LargeSystems, HaveAWorkerForEachCpu) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  EXPECT_EQ(in_forked_child([] {
              const LargeSystem system(2048, 2048);
              WorkerPool::process().configure({});
              return std::to_string(WorkerPool::process().max_workers());
            }),
            "2048");
}

TEST(LargeSystems, DivideCpusBetweenProcesses) {
  const std::vector<CpuSet> shares = share_cpus(*Machine::from_synthetic("numa:8 core:128 pu:2"), 16);
  ASSERT_EQ(shares.size(), 16u);
  EXPECT_EQ(shares.front().to_string(), "0-127");
  EXPECT_EQ(shares.back().to_string(), "1920-2047");
}

TEST(LargeSystems, CountWorkersOnTheCpusOfTheirLaneAsBound) {
  ARTIFEX_SKIP_WITHOUT_FORK();
  EXPECT_EQ(in_forked_child([] {
              const auto world = test::make_world(1, 1);  // sets the lanes of this machine
              const LargeSystem system(2048, 0);
              const RateSeries measured =
                  measure_rate({LaneId(0)}, [](int, int) { return [] { return int64_t{1}; }; }, {.seconds = 0.01});
              return std::to_string(measured.bound_workers - measured.workers);
            }),
            "0");
}

}  // namespace
}  // namespace artifex_devices::faults
