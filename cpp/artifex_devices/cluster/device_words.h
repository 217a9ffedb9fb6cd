// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// Changes ASCII letters only, independent of the process's locale.
std::string lower_case(std::string_view text);

/// The runs of letters and digits of a device kind in lower case, without the vendor's name and without features after
/// a colon. Example: "NVIDIA A100-SXM4-80GB" is a100, sxm4, 80gb. Whole words are compared, because "a100" is also in
/// "RTX A1000".
std::vector<std::string> words_of_kind(std::string_view kind);

}  // namespace artifex_devices
