// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_checks.h"

#include <gtest/gtest.h>

#include <string>

#include "artifex_devices/base/error.h"
#include "artifex_devices/checkpoint/stored_parts.h"

namespace artifex_devices {
namespace {

template <class Function>
std::string refusal_of(Function function) {
  try {
    function();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing is refused";
}

/// Rows `begin` to `end` of an array of float32 with 5 columns, in the first file.
StoredTensor stored_rows(int64_t begin, int64_t end, const std::string& name = "w") {
  return {.name = name,
          .type = "F32",
          .shape = {end - begin, 5},
          .begin = 0,
          .end = 20 * (end - begin),
          .origin = Dims{begin, 0},
          .global_shape = {},
          .checksums = {}};
}

/// A checkpoint of two files with these tensors, each in the file of its number.
StoredCheckpoint checkpoint_of(std::vector<StoredTensor> tensors, std::vector<size_t> files) {
  return {.files = StoredFiles({"/c/a.safetensors", "/c/b.safetensors"}, nullptr),
          .tensors = std::move(tensors),
          .file_of_tensor = std::move(files),
          .arrays = {},
          .manifest = {}};
}

StoredArray array_of_rows(int64_t rows, std::vector<size_t> tensors) {
  return {.name = "w",
          .shape = {rows, 5},
          .is_shape_derived = true,
          .dtype = DType::kFloat32,
          .type = "F32",
          .tensors = std::move(tensors)};
}

TEST(CheckPart, APartIsInsideTheArrayAndOfItsType) {
  const auto check = [](const StoredTensor& tensor, DType dtype) {
    return refusal_of([&] { check_part("load", "w", dtype, {8, 5}, tensor); });
  };
  EXPECT_EQ(check(stored_rows(4, 8), DType::kFloat32), "nothing is refused");
  EXPECT_EQ(check(stored_rows(5, 9), DType::kFloat32),
            "load: w is stored as F32 of shape (4, 5); expected a part of float32 of shape (8, 5); the checkpoint is "
            "damaged");
  EXPECT_EQ(check(stored_rows(4, 8), DType::kInt32),
            "load: w is stored as F32 of shape (4, 5); expected a part of int32 of shape (8, 5); the checkpoint is "
            "damaged");
}

TEST(CheckDisjoint, NamesTwoBoxesThatOverlap) {
  const auto check = [](const std::vector<IndexDomain>& boxes) {
    return refusal_of([&] { check_disjoint("load", "w", boxes); });
  };
  EXPECT_EQ(check({{{0, 0}, {4, 2}}, {{0, 2}, {4, 3}}, {{4, 0}, {4, 5}}}), "nothing is refused");
  EXPECT_EQ(check({{{4, 0}, {4, 5}}, {{0, 0}, {4, 5}}, {{3, 4}, {1, 1}}}),
            "load: two stored parts of w overlap, at (0, 0) and (3, 4); expected each element once; the checkpoint is "
            "damaged or mixed from several");
  EXPECT_EQ(check({{{}, {}}, {{}, {}}}).substr(0, 42), "load: two stored parts of w overlap, at ()");
  EXPECT_EQ(check({{{2}, {0}}, {{0}, {4}}}), "nothing is refused");  // without elements
  EXPECT_EQ(check(std::vector<IndexDomain>((1 << 14) + 1, IndexDomain{{0}, {1}})),
            "load: w is stored in 16385 parts; expected at most 16384");
}

TEST(CheckParts, AllElementsAreThereOnce) {
  const StoredCheckpoint found = checkpoint_of({stored_rows(0, 3), stored_rows(5, 8)}, {0, 1});
  EXPECT_EQ(refusal_of([&] { check_parts(found, array_of_rows(8, {0, 1}), "load"); }),
            "load: 'w' has 120 bytes in the files; expected 160 for float32 of shape (8, 5); a file is missing or "
            "damaged, restore another checkpoint");
  const StoredCheckpoint whole = checkpoint_of({stored_rows(0, 5), stored_rows(5, 8)}, {0, 1});
  EXPECT_EQ(refusal_of([&] { check_parts(whole, array_of_rows(8, {0, 1}), "load"); }), "nothing is refused");
}

TEST(CheckShards, AMissingFileMattersWhereNoFileStatesTheShapeOfADividedArray) {
  StoredCheckpoint found = checkpoint_of({stored_rows(0, 3), stored_rows(3, 6)}, {0, 1});
  found.arrays = {array_of_rows(6, {0, 1})};
  EXPECT_EQ(refusal_of([&] { check_shards(found, {}, "load"); }), "nothing is refused");
  EXPECT_EQ(refusal_of([&] { check_shards(found, {2, 3}, "load"); }),
            "load: the files of number 2, 3 are missing between the shard-N files of the folder, and no file states "
            "the shape of 'w'; expected the files of all processes; copy them again");
  found.arrays[0].is_shape_derived = false;
  EXPECT_EQ(refusal_of([&] { check_shards(found, {2}, "load"); }), "nothing is refused");
  found.arrays = {array_of_rows(3, {0})};  // not divided
  EXPECT_EQ(refusal_of([&] { check_shards(found, {2}, "load"); }), "nothing is refused");
}

TEST(CheckIndex, ListsEachTensorThatIsNotWhereTheIndexSays) {
  const StoredCheckpoint found = checkpoint_of({stored_rows(0, 3, "a"), stored_rows(0, 3, "b")}, {0, 1});
  const auto check = [&](const WeightIndex& index) {
    return refusal_of([&] { check_index(found, index, "/c/i.json", "load"); });
  };
  EXPECT_EQ(check({.files = {{"a", "a.safetensors"}, {"b", "b.safetensors"}}, .total_size = 120}),
            "nothing is refused");
  EXPECT_EQ(check({.files = {{"a", "b.safetensors"}, {"c", "a.safetensors"}}, .total_size = {}}),
            "load: '/c/i.json' does not match its files: 'a' is in 'a.safetensors', not in 'b.safetensors'; 'c' is not "
            "in 'a.safetensors'; 'b' in 'b.safetensors' is not listed; expected each tensor in the file that the index "
            "names; download the folder again, or correct the index");
  EXPECT_TRUE(check({.files = {{"a", "a.safetensors"}, {"b", "b.safetensors"}}, .total_size = 121})
                  .starts_with("load: the tensors of '/c/i.json' have 120 bytes in the files; expected the 121 of "));
}

TEST(CheckAreParts, FilesOfOneFolderMustSayThatTheyBelongTogether) {
  StoredCheckpoint found = checkpoint_of({stored_rows(0, 3), stored_rows(3, 6)}, {0, 1});
  EXPECT_EQ(refusal_of([&] { check_are_parts(found, "load"); }), "nothing is refused");
  found.tensors[1].origin.reset();
  EXPECT_EQ(
      refusal_of([&] { check_are_parts(found, "load"); }),
      "load: '/c' has 2 safetensors files, such as 'a.safetensors', 'b.safetensors', but no index that says which of "
      "them belong together: they may be copies of one model; expected an index, or names such as "
      "model-00001-of-00002.safetensors; pass the path of one file, such as '/c/b.safetensors'");
}

}  // namespace
}  // namespace artifex_devices
