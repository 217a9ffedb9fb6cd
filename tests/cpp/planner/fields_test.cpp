// SPDX-License-Identifier: Apache-2.0
// Every member of a struct is among the fields that callers see, or is left out on purpose.
#include "artifex_planner/fields.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "artifex_planner/collective/plan.h"
#include "artifex_planner/inference/plan.h"
#include "artifex_planner/profile/fit.h"
#include "artifex_planner/reshard/plan.h"
#include "artifex_planner/step/description.h"
#include "artifex_planner/step/result_fields.h"
#include "artifex_planner/training/fit.h"
#include "artifex_planner/training/plan.h"
#include "artifex_planner/training/schedule.h"
#include "artifex_planner/training/search.h"

namespace artifex_devices::planner {

template <class Type>
inline constexpr bool kIsOptional = false;
template <class Value>
inline constexpr bool kIsOptional<std::optional<Value>> = true;

/// Initialises any member. An optional takes it as its value.
struct AnyMember {
  template <class Member>
    requires(!kIsOptional<Member>)
  operator Member() const;  // NOLINT(google-explicit-constructor): it stands in an initialiser
};

namespace {

/// Number of members: of how many values an initialiser can consist.
template <class Struct, class... Members>
consteval size_t members() {
  if constexpr (requires { Struct{Members{}..., AnyMember{}}; }) {
    return members<Struct, Members..., AnyMember>();
  } else {
    return sizeof...(Members);
  }
}

/// `more`: fields that follow from members, without members that callers do not see.
template <class Struct>
void expect_fields(int more = 0) {
  std::vector<std::string> names;
  const Struct value{};
  visit_fields(value, [&](const char* name, const auto& /*field*/) { names.emplace_back(name); });
  EXPECT_EQ(static_cast<int>(names.size()), static_cast<int>(members<Struct>()) + more)
      << ::testing::PrintToString(names);
}

TEST(Fields, AreAllMembersOfInputs) {
  expect_fields<TransformerShape>();
  expect_fields<TrainingConfig>();
  expect_fields<TrainingSpace>();
  expect_fields<InferenceConfig>();
  expect_fields<TensorDescription>();
  expect_fields<OperationDescription>();
  expect_fields<OptimizerDescription>();
  expect_fields<StepDescription>();
}

TEST(Fields, AreAllMembersOfResults) {
  expect_fields<ShapeParameters>(1);               // the total
  expect_fields<TrainingStage>(kMemoryPartCount);  // each part and the total instead of the memory
  expect_fields<TrainingSeconds>(1);               // the total
  expect_fields<TrainingMessage>();
  expect_fields<TrainingPlan>(1);       // whether it is close
  expect_fields<TrainingCandidate>(1);  // devices
  expect_fields<TrainingSearch>();
  expect_fields<TrainingFit>();
  expect_fields<PipelineTask>();
  expect_fields<InferenceSeconds>();
  expect_fields<InferencePlan>(1);  // all memory
  expect_fields<ProfileParts>();
  expect_fields<ProfileFit>();
  expect_fields<TransferCost>(-1);  // not whether it is a bound, which only algorithms of collectives are
  expect_fields<CollectiveBytes>();
  expect_fields<CollectiveBound>(-2);  // not the bytes of each chip, nor the slices that a group spans
  expect_fields<CollectiveAlgorithm>(1);
  expect_fields<PlannedCollective>(1);  // the two numbers of its bytes
  expect_fields<PlannedReshardStep>();  // bytes before and after are a pair, expected and bound are two
  expect_fields<PlannedStrategy>(-1);   // not the function that counts bytes
  expect_fields<ReshardLowerBound>();
  expect_fields<PlannedReshard>();
  expect_fields<StepSeconds>(1);   // overlapped and serial instead of the device's
  expect_fields<ExpectedStep>(3);  // what is hidden, overlapped and serial
}

}  // namespace
}  // namespace artifex_devices::planner
