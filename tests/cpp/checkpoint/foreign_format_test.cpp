// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/foreign_format.h"

#include <gtest/gtest.h>

#include <string>

namespace artifex_devices {
namespace {

TEST(ForeignFormat, NamesFilesByTheirFirstBytes) {
  const std::string_view torch = "is a file of torch.save (pytorch_model.bin, .pt, .distcp), ";
  EXPECT_TRUE(foreign_format("PK\x03\x04\x14").starts_with(torch));
  EXPECT_TRUE(foreign_format("\x80\x02\x8a\x0a\x6c").starts_with(torch));
  EXPECT_TRUE(foreign_format("GGUF\x03").starts_with("is a GGUF file of llama.cpp; "));
  EXPECT_TRUE(foreign_format("\x89HDF\r\n\x1a\n").starts_with("is an HDF5 file, "));
  EXPECT_TRUE(foreign_format("\x93NUMPY\x01").starts_with("is a file of numpy.save; "));
  EXPECT_TRUE(foreign_format("version https://git-lfs.github.com/spec/v1\noid").starts_with("is a Git LFS pointer, "));
}

TEST(ForeignFormat, APageMayBeginWithWhiteSpaceAndAByteOrderMark) {
  for (const std::string_view head :
       {"<html>", "\n <!DOCTYPE html>", "\xEF\xBB\xBF\t<!doctype HTML>", "<HTML lang=en>"}) {
    EXPECT_TRUE(foreign_format(head).starts_with("is an HTML page, ")) << head;
  }
}

TEST(ForeignFormat, IsEmptyForOtherBytes) {
  for (const std::string_view head : {"", " ", "\xEF\xBB\xBF", "<htm", "PK\x03", "{\"a\": 1}", "GGU"}) {
    EXPECT_EQ(foreign_format(head), "") << head;
  }
}

}  // namespace
}  // namespace artifex_devices
