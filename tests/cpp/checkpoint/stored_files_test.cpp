// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;

/// A folder of `count` files, whose text is `text`, and the paths.
std::vector<std::string> write_files(const fs::path& folder, size_t count, std::string_view text) {
  fs::create_directory(folder);
  std::vector<std::string> paths;
  for (size_t i = 0; i < count; ++i) {
    paths.push_back(folder / std::to_string(i));
    std::ofstream(paths.back()) << text;
  }
  return paths;
}

std::string text_of(const File& file) {
  std::string text(static_cast<size_t>(file.bytes()), '\0');
  file.read(text.data(), file.bytes(), 0);
  return text;
}

class StoredFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("stored_files_" + std::to_string(::getpid()));
    fs::create_directory(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  /// The files of the folder `c`, opened as it is now.
  StoredFiles open_files(std::vector<std::string> paths) const {
    return {std::move(paths), std::make_shared<const Folder>(root_ / "c", "test")};
  }

  fs::path root_;
};

TEST_F(StoredFilesTest, OpensFilesOfTheFolderThatWasOpenedAlthoughAnotherOneHasItsPath) {
  StoredFiles files = open_files(write_files(root_ / "c", 2, "old"));
  fs::rename(root_ / "c", root_ / "away");
  write_files(root_ / "c", 2, "new");
  EXPECT_EQ(text_of(*files.open_first(0, "test")), "old");
}

TEST_F(StoredFilesTest, ReadsFilesThatWereRemovedAfterTheyWereOpenedFirst) {
  StoredFiles files = open_files(write_files(root_ / "c", 2, "old"));
  for (size_t i = 0; i < 2; ++i) files.open_first(i, "test");
  fs::remove_all(root_ / "c");
  EXPECT_EQ(text_of(*files.open(1, "test")), "old");
}

TEST_F(StoredFilesTest, AFileThatIsRemovedBeforeItIsOpenedAgainIsStale) {
  constexpr size_t kCount = StoredFiles::kOpen + 1;
  StoredFiles files = open_files(write_files(root_ / "c", kCount, "old"));
  for (size_t i = 0; i < kCount; ++i) files.open_first(i, "test");
  EXPECT_EQ(text_of(*files.open(kCount - 1, "test")), "old");
  fs::remove_all(root_ / "c");
  EXPECT_EQ(text_of(*files.open(kCount - 2, "test")), "old");
  try {
    files.open(kCount - 1, "test");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), ESTALE);
    EXPECT_NE(std::string(error.what()).find("was removed or replaced while the checkpoint was read"),
              std::string::npos);
  }
}

TEST_F(StoredFilesTest, AFileThatIsMissingAtFirstIsMissing) {
  write_files(root_ / "c", 0, "");
  StoredFiles files = open_files({root_ / "c" / "none"});
  try {
    files.open_first(0, "test");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), ENOENT);
  }
}

}  // namespace
}  // namespace artifex_devices
