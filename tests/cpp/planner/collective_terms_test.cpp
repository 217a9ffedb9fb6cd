// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "artifex_planner/calibration/terms.h"

namespace artifex_devices::planner {
namespace {

constexpr double kMessageBytes = 1 << 20;

double term(const CollectiveTerms& terms, std::string_view name) {
  const auto* const program = std::ranges::find(kProgramTerms, name);
  if (program != kProgramTerms.end()) return terms.program[static_cast<size_t>(program - kProgramTerms.begin())];
  return terms.copies[static_cast<size_t>(std::ranges::find(kCopyTerms, name) - kCopyTerms.begin())];
}

CollectiveTerms cooperative(ProgramCollective op, double bytes, int64_t devices, int64_t groups) {
  return collective_terms(op, bytes, devices, groups, ProgramExecutor::kCooperative, {});
}

TEST(CollectiveTerms, GathersAreCopiesOfEachGroup) {
  const CollectiveTerms terms = cooperative(ProgramCollective::kAllGather, kMessageBytes, 4, 2);
  EXPECT_EQ(term(terms, "cooperative programs"), 1);
  EXPECT_EQ(term(terms, "cooperative participants"), 8);
  EXPECT_EQ(term(terms, "results"), 2);
  EXPECT_EQ(term(terms, "calls on workers"), 2);
  EXPECT_EQ(term(terms, "copies"), 8);
  EXPECT_EQ(term(terms, "cached"), 2 * kMessageBytes);
  EXPECT_EQ(term(cooperative(ProgramCollective::kAllToAll, kMessageBytes, 4, 1), "copies"), 16);
}

TEST(CollectiveTerms, SumsReadAllInputsAndWriteOneResult) {
  const CollectiveTerms terms = cooperative(ProgramCollective::kAllReduce, kMessageBytes, 4, 1);
  EXPECT_EQ(term(terms, "results"), 1);
  EXPECT_EQ(term(terms, "added in caches"), 0);
  EXPECT_EQ(term(terms, "added from memory"), 5 * kMessageBytes);
  EXPECT_EQ(term(terms, "copies"), 0);
  EXPECT_EQ(term(cooperative(ProgramCollective::kReduceScatter, 1024, 3, 1), "added in caches"), 4096);
}

TEST(CollectiveTerms, PermutesAndSingleDevicesCopyNothing) {
  const CollectiveTerms terms =
      collective_terms(ProgramCollective::kPermute, kMessageBytes, 4, 1, ProgramExecutor::kThreads, {});
  EXPECT_EQ(term(terms, "threads programs"), 1);
  EXPECT_EQ(term(terms, "threads participants"), 4);
  EXPECT_EQ(term(terms, "calls on workers"), 0);
  EXPECT_EQ(term(cooperative(ProgramCollective::kAllGather, kMessageBytes, 1, 1), "copies"), 0);
}

TEST(CollectiveTerms, HugeSizesScale) {
  const double bytes = 1e30;
  EXPECT_DOUBLE_EQ(term(cooperative(ProgramCollective::kAllGather, bytes, 2, 1), "memory"), bytes);
}

TEST(ExecutorFor, LargeBlocksRunOnThreads) {
  EXPECT_EQ(executor_for(ProgramCollective::kAllReduce, kMessageBytes, 4, kMessageBytes), ProgramExecutor::kThreads);
  EXPECT_EQ(executor_for(ProgramCollective::kAllGather, kMessageBytes, 4, kMessageBytes),
            ProgramExecutor::kCooperative);
  EXPECT_EQ(executor_for(ProgramCollective::kAllReduce, kMessageBytes, 1, kMessageBytes),
            ProgramExecutor::kCooperative);
}

TEST(ProgramCollective, HasNames) {
  EXPECT_EQ(kind_from_name<ProgramCollective>("permute"), ProgramCollective::kPermute);
  EXPECT_EQ(kind_from_name<ProgramCollective>("broadcast"), std::nullopt);
}

}  // namespace
}  // namespace artifex_devices::planner
