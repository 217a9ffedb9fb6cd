// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/interrupt.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

class Interrupt : public testing::Test {
 protected:
  void TearDown() override { set_interrupt_hook(nullptr); }
};

TEST_F(Interrupt, DoesNothingWithoutAHook) { EXPECT_NO_THROW(check_interrupt()); }

TEST_F(Interrupt, CallsTheHookEachTime) {
  static int asked = 0;
  asked = 0;
  set_interrupt_hook([] {
    ++asked;
    return false;
  });
  check_interrupt();
  check_interrupt();
  EXPECT_EQ(asked, 2);
}

TEST_F(Interrupt, ThrowsWhenTheHookReturnsTrue) {
  set_interrupt_hook([] { return true; });
  EXPECT_THROW(check_interrupt(), Interrupted);
  set_interrupt_hook(nullptr);
  EXPECT_NO_THROW(check_interrupt());
}

}  // namespace
}  // namespace artifex_devices
