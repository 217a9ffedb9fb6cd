// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/streamed_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "artifex_devices/base/file.h"
#include "artifex_devices/checkpoint/crc32c.h"

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;

class StreamedFileTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove(path_); }
  void TearDown() override { fs::remove(path_); }

  static void write(StreamedFile& file, const std::string& text) {
    file.write(reinterpret_cast<const std::byte*>(text.data()), static_cast<int64_t>(text.size()));
  }
  std::string content() const { return read_regular_file(path_, int64_t{1} << 30, "test"); }

  const fs::path path_ = fs::path(testing::TempDir()) / ("streamed_file_" + std::to_string(::getpid()));
};

TEST_F(StreamedFileTest, HasTheBytesInTheirOrderAndTheChecksumOfThoseBehindTheHead) {
  std::mt19937_64 random(3);
  const std::string head = "the head";
  std::string expected;
  StreamedFile file(path_, "save", static_cast<int64_t>(head.size()));
  for (const size_t bytes : {0, 1, 5, 4096, 1 << 20, (1 << 20) + 1, 3 << 20, 17}) {
    std::string text(bytes, '\0');
    for (char& each : text) each = static_cast<char>(random());
    write(file, text);
    expected += text;
    EXPECT_EQ(file.bytes(), static_cast<int64_t>(head.size() + expected.size()));
    EXPECT_EQ(file.checksum(), crc32c_by_table(expected.data(), expected.size()));
  }
  file.finish(head);
  EXPECT_EQ(content(), head + expected);
}

TEST_F(StreamedFileTest, WithoutAHeadTheFileBeginsWithTheFirstBytes) {
  StreamedFile file(path_, "save", 0);
  write(file, "abc");
  file.finish({});
  EXPECT_EQ(content(), "abc");
  EXPECT_EQ(file.bytes(), 3);
}

TEST_F(StreamedFileTest, AnUnwrittenHeadIsAGapOfZeros) {
  StreamedFile file(path_, "save", 4);
  write(file, "abc");
  EXPECT_EQ(content(), std::string(4, '\0') + "abc");
  file.finish("ab");  // shorter than was stated
  EXPECT_EQ(content(), std::string("ab\0\0abc", 7));
}

TEST_F(StreamedFileTest, AFileThatExistsStaysAsItIs) {
  std::ofstream(path_) << "mine";
  try {
    StreamedFile(path_, "save", 0);
    FAIL() << "it was replaced";
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), EEXIST);
    EXPECT_EQ(std::string(error.what()), "save: " + path_.string() + ": cannot open: File exists");
  }
  EXPECT_EQ(content(), "mine");
}

TEST_F(StreamedFileTest, AnErrorOfTheStorageNamesThePlaceAndLeavesTheCount) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit limited{.rlim_cur = (1 << 20) + 10, .rlim_max = before.rlim_max};
  StreamedFile file(path_, "save", 4);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);  // files cannot grow further, as on a full disk
  std::string text;
  int code = 0;
  try {
    write(file, std::string(3 << 20, 'x'));
  } catch (const FileError& error) {
    text = error.what();
    code = error.code();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, EFBIG);
  EXPECT_EQ(text, "save: " + path_.string() + ": cannot write 1048570 bytes at 1048586: File too large");
  EXPECT_EQ(file.bytes(), 4 + (1 << 20));  // of the pieces that were written completely
}

}  // namespace
}  // namespace artifex_devices
