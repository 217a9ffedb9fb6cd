// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/step/einsum_text.h"

#include <gtest/gtest.h>

namespace artifex_devices::planner {
namespace {

using Letters = std::vector<std::string>;

TEST(EinsumText, SplitsInputsAndOutput) {
  const auto einsum = parse_einsum("bsd, df -> bsf");
  ASSERT_TRUE(einsum);
  ASSERT_EQ(einsum->inputs.size(), 2U);
  EXPECT_EQ(einsum->inputs[0].text, "bsd");
  EXPECT_EQ(einsum->inputs[1].letters, (Letters{"d", "f"}));
  EXPECT_EQ(einsum->output.letters, (Letters{"b", "s", "f"}));
  EXPECT_TRUE(einsum->has_letters_only);
}

TEST(EinsumText, CountsLettersNotBytes) {
  const auto einsum = parse_einsum("βd->β");
  ASSERT_TRUE(einsum);
  EXPECT_EQ(einsum->inputs[0].letters, (Letters{"β", "d"}));
  EXPECT_TRUE(einsum->has_letters_only);
}

TEST(EinsumText, NeedsAnArrowAndLetters) {
  EXPECT_FALSE(parse_einsum("bd,df"));
  EXPECT_FALSE(parse_einsum("b1->b")->has_letters_only);
  EXPECT_TRUE(parse_einsum("->")->inputs[0].letters.empty());
}

}  // namespace
}  // namespace artifex_devices::planner
