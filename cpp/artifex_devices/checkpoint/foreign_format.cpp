// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/foreign_format.h"

#include <algorithm>

namespace artifex_devices {
namespace {

constexpr std::string_view kTorch =
    "is a file of torch.save (pytorch_model.bin, .pt, .distcp), which may run code when it is loaded; expected "
    "safetensors; convert it with PyTorch: safetensors.torch.save_file(torch.load(FILE, weights_only=True), "
    "\"model.safetensors\")";

struct Format {
  std::string_view begin;
  std::string_view text;
};
constexpr Format kFormats[] = {
    {"version https://git-lfs.github.com/spec/",
     "is a Git LFS pointer, not the file that it stands for; expected the file; run `git lfs pull` in its repository"},
    {"PK\x03\x04", kTorch},
    {"\x80\x02\x8a\x0a", kTorch},  // before PyTorch 1.6: a pickle of a large integer
    {"GGUF", "is a GGUF file of llama.cpp; expected safetensors; download the safetensors files of the model"},
    {"\x89HDF\r\n",
     "is an HDF5 file, as Keras writes it; expected safetensors; convert it with the program that wrote it"},
    {"\x93NUMPY",
     "is a file of numpy.save; expected safetensors; read it with numpy.load and write it with "
     "checkpoint.save"},
};

bool is_html(std::string_view head) noexcept {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  const auto begins_with = [&](std::string_view lower) {
    return head.size() >= lower.size() && std::equal(lower.begin(), lower.end(), head.begin(), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
           });
  };
  return begins_with("<!doctype html") || begins_with("<html");
}

}  // namespace

std::string_view foreign_format(std::string_view head) noexcept {
  if (is_html(head)) {
    return "is an HTML page, such as the error page of a download; expected the file; download it again, signed in if "
           "the model asks for it";
  }
  const auto* found = std::ranges::find_if(kFormats, [&](const Format& each) { return head.starts_with(each.begin); });
  return found == std::end(kFormats) ? std::string_view() : found->text;
}

}  // namespace artifex_devices
