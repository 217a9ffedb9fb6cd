// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace artifex_devices {
namespace {

namespace fs = std::filesystem;

TEST(RealPathTest, LinksAreFollowedAndTheLastNameMayBeMissing) {
  const fs::path root = fs::canonical(fs::temp_directory_path()) / "artifex_real_path";
  fs::remove_all(root);
  fs::create_directories(root / "folder");
  fs::create_directory_symlink("folder", root / "link");
  fs::create_symlink("nowhere", root / "dangling");
  const auto real = [&](const char* name) { return real_path((root / name).string()); };
  EXPECT_EQ(real("folder"), (root / "folder").string());
  EXPECT_EQ(real("link"), (root / "folder").string());
  EXPECT_EQ(real("link/new"), (root / "folder/new").string());
  EXPECT_EQ(real("dangling"), std::nullopt);
  EXPECT_EQ(real("missing/new"), std::nullopt);
  EXPECT_EQ(real_path("/"), "/");
  EXPECT_EQ(real_path("/artifex_missing"), "/artifex_missing");
  fs::remove_all(root);
}

TEST(FolderTest, HasItsFilesAfterItIsRenamedAndKnowsThatItsPathHasAnotherFolder) {
  const fs::path root = fs::temp_directory_path() / ("artifex_folder_" + std::to_string(::getpid()));
  fs::create_directories(root / "c");
  for (const char* name : {"b", "a"}) std::ofstream(root / "c" / name) << name;
  const Folder folder(root / "c", "test");
  EXPECT_TRUE(folder.is_at_path());
  fs::rename(root / "c", root / "away");
  EXPECT_FALSE(folder.is_at_path());
  fs::create_directory(root / "c");
  EXPECT_FALSE(folder.is_at_path());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(folder.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(folder.contains("a"));
  EXPECT_FALSE(folder.contains("c"));
  EXPECT_EQ(read_regular_file(root / "c" / "b", 1, "test", &folder), "b");
  EXPECT_THROW(Folder(root / "away" / "a", "test"), FileError);
  fs::remove_all(root);
}

}  // namespace
}  // namespace artifex_devices
