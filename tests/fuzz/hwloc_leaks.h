// SPDX-License-Identifier: Apache-2.0
#pragma once

// hwloc 2.9 leaks a few bytes when it refuses an XML import or a synthetic description midway, so targets that load
// machines do not check for leaks.
// Visible, because GCC's sanitizer runtime is a shared library that looks up this symbol.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return 1; }
