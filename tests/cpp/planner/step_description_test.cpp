// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_planner/step/description.h"

namespace artifex_devices::planner {
namespace {

using Texts = std::vector<std::string>;

/// x w -> y, with the sizes 8, 4 and 2.
StepDescription described_product() {
  StepDescription step;
  step.tensors = {{.name = "x", .shape = Dims{8, 4}, .axes = {"batch", "in"}, .dtype = "bfloat16"},
                  {.name = "w", .shape = Dims{4, 2}, .axes = {"in2", "out"}, .dtype = "bfloat16", .role = "parameter"},
                  {.name = "y", .shape = Dims{8, 2}, .axes = {"batch", "out"}, .dtype = "bfloat16"}};
  step.operations = {{.name = "product", .einsum = "bd,df->bf", .inputs = {"x", "w"}, .output = "y"}};
  step.tokens = 8;
  step.optimizer = OptimizerDescription{};
  return step;
}

Texts mistakes_of(void (*change)(StepDescription&)) {
  StepDescription step = described_product();
  change(step);
  return step_mistakes(step);
}

TEST(StepDescription, BecomesAModelOfNumbers) {
  const StepModel model = step_model(described_product());
  EXPECT_EQ(model.logical_axes, (Texts{"batch", "in", "in2", "out"}));
  EXPECT_EQ(model.batch_axes, (std::vector<int>{0}));
  EXPECT_EQ(model.tensors[1].axes, (std::vector<int>{2, 3}));
  EXPECT_EQ(model.tensors[1].role, StepRole::kParameter);
  EXPECT_TRUE(model.tensors[0].scales);
  EXPECT_FALSE(model.tensors[1].scales);
  EXPECT_EQ(model.ops[0].inputs, (std::array<int, 2>{0, 1}));
  EXPECT_EQ(model.ops[0].output, 2);
  EXPECT_EQ(model.ops[0].indices[0], (std::vector<int>{0, 1}));
  EXPECT_EQ(model.ops[0].indices[1], (std::vector<int>{1, 2}));
  EXPECT_EQ(model.ops[0].indices[2], (std::vector<int>{0, 2}));
  EXPECT_EQ(model.ops[0].format, MatmulFormat::kBFloat16);
  EXPECT_TRUE(model.is_training);
  EXPECT_EQ(model.optimizer_bytes, 8);
}

TEST(StepDescription, ComputesProductsInTheFormatOfTheWiderOperand) {
  StepDescription step = described_product();
  step.tensors[1].dtype = "float32";
  step.tensors[1].itemsize = 4;
  EXPECT_EQ(step_model(step).ops[0].format, matmul_format_from_name("float32"));
  step.operations[0].dtype = "float8_e4m3fn";
  EXPECT_EQ(step_model(step).ops[0].format, matmul_format_from_name("float8"));
  step.operations[0].dtype = "complex64";
  try {
    step_model(step, "suggest");
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_TRUE(
        std::string_view(error.what()).starts_with("suggest: no source publishes FLOP/s for products of complex64"));
  }
}

TEST(StepDescription, ReportsEveryMistakeOfItsTensors) {
  EXPECT_TRUE(step_mistakes(described_product()).empty());
  const Texts wrong = mistakes_of([](StepDescription& step) {
    step.tokens = 0;
    step.tensors[0] = {.name = "x", .shape = Dims{0, 4}, .axes = {"batch"}, .role = "weight", .count = 0};
    step.tensors[1] = {.name = "x", .shape = Dims{int64_t{1} << 61, 4}, .axes = {"a", "b"}};
  });
  EXPECT_EQ(wrong, (Texts{"tokens is 0, expected an int of 1 or more, below 2**62", "two tensors are named 'x'",
                          "tensor 'x': it has 2 dimensions and 1 axes",
                          "tensor 'x': shape is (0, 4), expected ints of 1 or more, and fewer than 2**62 elements",
                          "tensor 'x': role is 'weight', expected one of parameter, activation, given",
                          "tensor 'x': count is 0, expected an int of 1 or more, below 2**62",
                          "tensor 'x': shape is (2305843009213693952, 4), expected ints of 1 or more, and fewer than "
                          "2**62 elements"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.batch_axes = {"batch", "in"}; }),
            (Texts{"tensor 'x': it grows twice with the batch, along batch and in"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.operations.clear(); }),
            (Texts{"it has no tensors or no operations"}));
}

TEST(StepDescription, ReportsOperationsThatDoNotFitTheirTensors) {
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.tensors[1].shape = Dims{5, 2}; }),
            (Texts{"operation 'product': 'd' has unequal sizes: 4 in 'x', 5 in 'w'"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.operations[0].einsum = "bd,df->bg"; }),
            (Texts{"operation 'product': 'g' is in the output only"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.operations[0].kind = "sum"; }),
            (Texts{"operation 'product': kind is 'sum', expected one of matmul, elementwise, lookup, route"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.operations[0].inputs[1] = "z"; }),
            (Texts{"operation 'product': it uses 'z', expected names of tensors (x, w, y)",
                   "no operation uses parameter 'w', expected an operation that defines its gradient"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.operations[0].einsum = "bd,df"; }),
            (Texts{"operation 'product': einsum is 'bd,df', expected one such as 'bd,df->bf'"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.operations[0].einsum = "b1,1f->bf"; }),
            (Texts{"operation 'product': einsum is 'b1,1f->bf', expected letters for 2 inputs"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.tensors[1].dtype = "float16"; }),
            (Texts{"operation 'product': it multiplies bfloat16 by float16, expected a dtype for the product"}));
}

TEST(StepDescription, ReportsBatchesAndOptimisersThatDoNotFit) {
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.tokens = 12; }),
            (Texts{"tokens is 12, expected a multiple of 8, the size of 'batch' in the shapes"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.batch_axes = {"batch", "rows"}; }),
            (Texts{"the batch axis 'rows' has no tensor, expected one size"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.batch_axes.clear(); }), (Texts{"it has no batch_axes"}));
  EXPECT_EQ(mistakes_of([](StepDescription& step) { step.optimizer->bytes_per_parameter = -1; }),
            (Texts{"bytes_per_parameter is -1, expected a number of 0 to 1048576"}));
}

TEST(StepDescription, NeedsActivationsToBeWrittenBeforeTheyAreRead) {
  StepDescription step = described_product();
  step.optimizer.reset();
  step.tensors[1].shape = Dims{4, 4};
  step.tensors[2].shape = Dims{8, 4};
  step.tensors.push_back({.name = "z", .shape = Dims{8, 4}, .axes = {"batch", "c"}, .dtype = "bfloat16"});
  step.operations.push_back({.name = "second", .einsum = "bd,df->bf", .inputs = {"y", "w"}, .output = "z"});
  EXPECT_TRUE(step_mistakes(step).empty());
  std::swap(step.operations[0], step.operations[1]);
  EXPECT_EQ(step_mistakes(step),
            (Texts{"operation 'second' reads 'y', which only the later operation 'product' writes"}));
  step.operations.resize(1);
  step.operations[0].output = "y";
  EXPECT_EQ(step_mistakes(step), (Texts{"operation 'second' reads 'y', which it writes itself"}));
}

}  // namespace
}  // namespace artifex_devices::planner
