# SPDX-License-Identifier: Apache-2.0
# How everything here is compiled: C++20, hidden symbols, position-independent, hardened, warnings on.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)  # no static library waits for another
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

# GCC aligns functions and the targets of jumps, which takes 3.5 % of the code and helps loops over elements only.
set(ARTIFEX_UNALIGNED $<$<CXX_COMPILER_ID:GNU>:-fno-align-functions -fno-align-jumps -fno-align-labels -fno-align-loops>)
set(ARTIFEX_ALIGNED $<$<CXX_COMPILER_ID:GNU>:-falign-functions -falign-jumps -falign-labels -falign-loops>)
add_library(artifex_compile INTERFACE)
target_compile_options(artifex_compile INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -fstack-protector-strong
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion -Wno-shadow -Wno-deprecated-declarations> # of unity builds and libstdc++
  $<$<BOOL:${ARTIFEX_WERROR}>:-Werror>)
target_compile_definitions(artifex_compile INTERFACE _GLIBCXX_ASSERTIONS)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The same results on all processors: those of x86-64 that have no more than the baseline cannot add unrounded products.
  target_compile_options(artifex_compile INTERFACE -ffp-contract=off)
endif()
target_link_options(artifex_compile INTERFACE -Wl,-z,relro,-z,now)
if(ARTIFEX_UNITY)  # GCC takes a file of its own that another file includes for a header
  target_compile_options(artifex_compile INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  # By default GCC lets units of this size grow by 40 % only, which leaves small functions of hot calls out of line.
  target_compile_options(artifex_compile INTERFACE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:--param=large-unit-insns=100000>)
endif()
# With memory for it, units take less time: twice as many files are one (artifex_unity) where no core would wait for the
# largest one, and GCC does not look for memory to free each time that its heap has doubled, a tenth of the time of a
# large unit. The largest unit takes 1.9 GB.
set(ARTIFEX_UNIT_SCALE 1)
cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR enough_mib "4000 * ${cores}")
if(memory_mib GREATER_EQUAL enough_mib)
  if(cores LESS_EQUAL 4)
    set(ARTIFEX_UNIT_SCALE 2)
  endif()
  target_compile_options(artifex_compile INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000 --param=ggc-min-expand=400>)
endif()
if(ARTIFEX_CHECK_LOCKS)
  target_compile_definitions(artifex_compile INTERFACE ARTIFEX_CHECK_LOCKS)
endif()
if(ARTIFEX_SANITIZE)
  target_compile_options(artifex_compile INTERFACE
    -fsanitize=${ARTIFEX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  string(REGEX MATCH "address|thread" main "${ARTIFEX_SANITIZE}")
  string(TOUPPER "${main}" main)
  target_compile_definitions(artifex_compile INTERFACE  # as GCC does
    $<$<CXX_COMPILER_ID:Clang>:__SANITIZE_${main}__=1>)
  target_link_options(artifex_compile INTERFACE -fsanitize=${ARTIFEX_SANITIZE})
endif()
# With clang and the address sanitizer, libFuzzer can drive the fuzz targets (tests/fuzz): rooms that parse are compiled for it.
if(ARTIFEX_BUILD_TESTS AND ARTIFEX_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(ARTIFEX_FUZZ ON)
endif()
