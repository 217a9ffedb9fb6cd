// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/python_repr.h"

#include <gtest/gtest.h>

namespace artifex_devices {
namespace {

TEST(PythonRepr, IsThatOfPython) {
  EXPECT_EQ(python_repr("it's"), "\"it's\"");
  EXPECT_EQ(python_repr("a\\'\""), R"('a\\\'"')");
}

TEST(PrintableTest, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("layer 1's \"w\" \\ \xC3\x9F"), "layer 1's \"w\" \\ \xC3\x9F");
  EXPECT_EQ(printable("\x1b[2J\n\x7f"), R"(\x1b[2J\n\x7f)");
  EXPECT_EQ(printable("\xC2\x9B\xE2\x80\xAE"), R"(\x9b\u202e)");  // CSI in one character; right-to-left override
  EXPECT_EQ(printable("\xFF"), R"(\udcff)");
}

}  // namespace
}  // namespace artifex_devices
