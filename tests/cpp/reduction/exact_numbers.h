// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "artifex_devices/array/host_view.h"

namespace artifex_devices {

template <class T>
HostView dense_view(std::vector<T>& values, const Dims& shape) {
  HostView view;
  view.data = values.data();
  view.dtype = sizeof(T) == sizeof(float) ? DType::kFloat32 : DType::kFloat64;
  view.shape = shape;
  view.byte_strides = row_major_strides(shape, sizeof(T));
  return view;
}

/// Random numbers with exponents from -range to range.
template <class T>
std::vector<T> spread_numbers(size_t count, int range, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<T> fractions(-1, 1);
  std::uniform_int_distribution<int> exponents(-range, range);
  std::vector<T> numbers(count);
  for (T& number : numbers) number = std::ldexp(fractions(random), exponents(random));
  return numbers;
}

}  // namespace artifex_devices
