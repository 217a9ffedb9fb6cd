// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/dlpack.h"

#include <gtest/gtest.h>

#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::error_of;
using test::make_world;
using test::named;
using test::Random;
using test::values;

ShardingRef first_device(const ClientRef& world) { return SingleDeviceSharding::make(world->device(DeviceId(0))); }

TEST(Dlpack, ExportsTheMemoryOfAnArrayAndKeepsItAlive) {
  Random random(1);
  const ClientRef world = make_world(1, 1);
  const HostView host = test::dense(random, {4, 3}, DType::kFloat32);
  ArrayRef array = device_put(host, first_device(world), true);
  const void* data = array->storage()->device_data(BufferId(0));
  const auto managed = export_dlpack_versioned(dlpack_view(array, false), false);
  EXPECT_EQ(managed->tensor.data, data);
  EXPECT_EQ(managed->flags, dlpack::kReadOnly);
  EXPECT_EQ(managed->version.major, 1U);
  array->delete_();
  array.reset();
  const HostView view = view_of_dlpack(managed->tensor, managed->flags);
  EXPECT_EQ(values(view), values(host));
  EXPECT_EQ(view.byte_strides, (Dims{12, 4}));
}

TEST(Dlpack, ExportsCopies) {
  Random random(2);
  const ClientRef world = make_world(1, 1);
  const ArrayRef array = device_put(test::dense(random, {5}, DType::kInt8), first_device(world), true);
  const auto managed = export_dlpack_versioned(dlpack_view(array, true), true);
  EXPECT_NE(managed->tensor.data, array->storage()->device_data(BufferId(0)));
  EXPECT_EQ(managed->flags, dlpack::kIsCopied);
  EXPECT_EQ(values(view_of_dlpack(managed->tensor, managed->flags)), values(*device_get(array)));
}

TEST(Dlpack, ImportsEveryDtypeThatItExports) {
  Random random(3);
  const ClientRef world = make_world(1, 1);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const ArrayRef array = device_put(test::dense(random, {2, 2}, dtype), first_device(world), true);
    const auto managed = export_dlpack_versioned(dlpack_view(array, false), false);
    EXPECT_EQ(view_of_dlpack(managed->tensor, managed->flags).dtype, dtype) << name(dtype);
  }
}

TEST(Dlpack, RefusesArraysAndVersionsThatItCannotDescribe) {
  Random random(4);
  const ClientRef world = make_world(1, 2);
  const ArrayRef spread = device_put(test::dense(random, {4}, DType::kInt8), named(world, {2}, {"a"}), true);
  EXPECT_EQ(error_of<UnsupportedBuffer>([&] { check_one_device(*spread, "__dlpack__"); }),
            "__dlpack__: the Array is on 2 devices; expected one device; pass its value, np.asarray(x), or a shard, "
            "x.addressable_shards[0].data");
  EXPECT_THROW(check_dlpack_version(DType::kInt4, {1, 0}, "__dlpack__"), UnsupportedBuffer);
  EXPECT_NO_THROW(check_dlpack_version(DType::kInt4, {1, 1}, "__dlpack__"));
  EXPECT_NO_THROW(check_dlpack_version(DType::kInt8, {0, 8}, "__dlpack__"));
}

/// A tensor of two by three int16, row-major.
class DlpackTensor : public testing::Test {
 protected:
  std::string error() const {
    return error_of<UnsupportedBuffer>([&] { view_of_dlpack(tensor_, 0); });
  }
  int16_t data_[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape_[2] = {2, 3};
  int64_t strides_[2] = {3, 1};
  dlpack::Tensor tensor_ = {data_, {dlpack::kCpu, 0}, 2, {0, 16, 1}, shape_, strides_, 0};
};

TEST_F(DlpackTensor, MayLackStridesAndBeginAtAnOffset) {
  tensor_.strides = nullptr;
  EXPECT_EQ(view_of_dlpack(tensor_, 0).byte_strides, (Dims{6, 2}));
  shape_[0] = 1;
  tensor_.byte_offset = 6;
  EXPECT_EQ(view_of_dlpack(tensor_, 0).data, data_ + 3);
}

TEST_F(DlpackTensor, IsUnsupportedForOtherDevicesAndElements) {
  tensor_.device.type = 8;
  EXPECT_EQ(
      error(),
      "from_dlpack: the memory is of DLPack device type 8; expected 1, the host, or 2, CUDA; copy it to the host in "
      "the producer first");
  tensor_.device.type = dlpack::kCudaHost;
  EXPECT_NO_THROW(view_of_dlpack(tensor_, 0));
  tensor_.element.lanes = 2;
  EXPECT_EQ(error(),
            "from_dlpack: elements of type code 0, 16 bits, 2 lanes are not supported; expected a bool, integer, float "
            "or complex dtype of NumPy or ml_dtypes; convert them in the producer");
  tensor_.element = {0, 4, 1};  // packed: not as ml_dtypes stores it
  EXPECT_THROW(view_of_dlpack(tensor_, 0), UnsupportedBuffer);
  EXPECT_EQ(view_of_dlpack(tensor_, dlpack::kSubBytePadded).dtype, DType::kInt4);
}

TEST_F(DlpackTensor, IsCheckedBeforeItsMemoryIsRead) {
  shape_[0] = -1;
  EXPECT_EQ(error(), "from_dlpack: shape (-1, 3); the producer's capsule is malformed");
  shape_[0] = int64_t{1} << 62;
  EXPECT_EQ(error(),
            "from_dlpack: shape (4611686018427387904, 3) has more bytes than fit 63 bits; the producer's capsule is "
            "malformed");
  shape_[0] = 2;
  strides_[0] = int64_t{1} << 62;
  EXPECT_EQ(error(), "from_dlpack: stride 4611686018427387904; the producer's capsule is malformed");
  strides_[0] = 3;
  tensor_.data = nullptr;
  EXPECT_EQ(error(), "from_dlpack: no data; the producer's capsule is malformed");
  tensor_.shape = nullptr;
  EXPECT_EQ(error(), "from_dlpack: no shape; the producer's capsule is malformed");
  tensor_.rank = 65;
  EXPECT_EQ(error(), "from_dlpack: 65 dimensions; expected 0 to 64; the producer's capsule is malformed");
}

TEST_F(DlpackTensor, BecomesAnArrayWithoutACopyWhereThatIsPossible) {
  const ClientRef world = make_world(1, 2);
  const HostView view = view_of_dlpack(tensor_, 0);
  EXPECT_EQ(array_from_dlpack(view, first_device(world), {})->storage()->device_data(BufferId(0)),
            static_cast<const void*>(data_));
  EXPECT_NE(array_from_dlpack(view, first_device(world), true)->storage()->device_data(BufferId(0)),
            static_cast<const void*>(data_));
  const ShardingRef other = SingleDeviceSharding::make(world->device(DeviceId(1)));
  EXPECT_EQ(values(*device_get(array_from_dlpack(view, other, {}))), values(view));
  EXPECT_EQ(error_of<InvalidArgument>([&] { array_from_dlpack(view, other, false); }),
            "from_dlpack: copy=False, but a copy is needed: the requested device is not cpu:0, where the memory is; "
            "leave copy out, or pass row-major memory and no device");
  HostView transposed = view;
  transposed.shape = {3, 2};
  transposed.byte_strides = {2, 6};
  EXPECT_THROW(array_from_dlpack(transposed, first_device(world), false), InvalidArgument);
  EXPECT_EQ(values(*device_get(array_from_dlpack(transposed, first_device(world), {}))), values(transposed));
  EXPECT_THROW(array_from_dlpack(view, named(world, {2}, {"a"}), {}), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
