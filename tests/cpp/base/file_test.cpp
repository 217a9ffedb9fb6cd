// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

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

}  // namespace
}  // namespace artifex_devices
