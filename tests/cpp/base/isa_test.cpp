// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/isa.h"

#include <gtest/gtest.h>

#include <string>

#include "artifex_devices/base/copy_kernels.h"
#include "artifex_devices/base/error.h"
#include "message_of.h"

namespace artifex_devices {
namespace {

TEST(Isa, UsesTheBestSupportedSetByDefault) {
  EXPECT_EQ(supported_isas().front(), Isa::kBaseline);
  EXPECT_EQ(active_isa(), supported_isas().back());
  set_active_isa("baseline", "test");
  EXPECT_EQ(active_isa(), Isa::kBaseline);
  EXPECT_EQ(&copy_kernels(), &copy_kernels_baseline);
  set_active_isa(to_string(supported_isas().back()), "test");
}

TEST(Isa, RoundTripsThroughNames) {
  for (const Isa isa : supported_isas()) EXPECT_EQ(isa_from_name(to_string(isa), "test: isa"), isa);
  EXPECT_EQ(to_string(static_cast<Isa>(77)), "unknown");
}

TEST(Isa, RefusesUnknownNamesAndListsSupportedOnes) {
  EXPECT_TRUE(message_of([] {
                isa_from_name("sve", "measure: isa");
              }).starts_with("measure: isa is \"sve\", which is not known here; expected one of \"baseline\""));
  EXPECT_TRUE(
      message_of([] { set_active_isa("mmx", "test"); })
          .starts_with(
              "test: the instruction set of copies is \"mmx\", which is not known here; expected one of \"baseline\""));
  EXPECT_EQ(active_isa(), supported_isas().back());
}

TEST(Isa, SelectsTheVariantOfEachSet) {
  EXPECT_EQ(variant_of(Isa::kBaseline, 1, 2, 3), 1);
  EXPECT_EQ(variant_of(Isa::kAvx2, 1, 2, 3), 2);
  EXPECT_EQ(variant_of(Isa::kAvx512, 1, 2, 3), 3);
}

}  // namespace
}  // namespace artifex_devices
