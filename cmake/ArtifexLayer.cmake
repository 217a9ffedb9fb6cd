# SPDX-License-Identifier: Apache-2.0
# artifex_layer(<room> [PARSES] [SMALL] [PUBLIC <header>...] SOURCES <file>... [RARE <file>...] [DEPENDS <room>...]
#   [LIBRARIES <target>...])
# One room of the runtime. PUBLIC headers, and those that they include, are installed. DEPENDS is the architecture:
# tools/check_layers.py checks the includes against it.
add_library(artifex_rooms INTERFACE)  # all of them, in their order
function(artifex_layer room)
  cmake_parse_arguments(ARG "PARSES;SMALL" "" "PUBLIC;SOURCES;RARE;DEPENDS;LIBRARIES" ${ARGN})
  set(options)
  foreach(option IN ITEMS PARSES SMALL)
    if(ARG_${option})
      list(APPEND options ${option})
    endif()
  endforeach()
  list(TRANSFORM ARG_SOURCES PREPEND "${room}/")
  list(TRANSFORM ARG_RARE PREPEND "${room}/")
  list(TRANSFORM ARG_DEPENDS PREPEND artifex_)
  artifex_library(${room} ${options}
    SOURCES ${ARG_SOURCES} RARE ${ARG_RARE} DEPENDS ${ARG_DEPENDS} LIBRARIES ${ARG_LIBRARIES})
  target_link_libraries(artifex_rooms INTERFACE artifex_${room})
  # The shared library exports the names of the rooms; calls inside it stay direct.
  foreach(target IN ITEMS artifex_${room} artifex_${room}_rare)
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET default)
      target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    endif()
  endforeach()
  list(TRANSFORM ARG_PUBLIC PREPEND "artifex_devices/${room}/")
  set_property(GLOBAL APPEND PROPERTY ARTIFEX_PUBLIC_HEADERS ${ARG_PUBLIC})
  set_property(GLOBAL APPEND PROPERTY ARTIFEX_ROOMS ${room})
endfunction()

# artifex_library(<name> [PARSES] [SMALL] SOURCES <file>... [RARE <file>...] [DEPENDS <target>...] [LIBRARIES <target>...])
# The static library artifex_<name>. tests/cpp/<name>/*_test.cpp are one executable.
# PARSES: a fuzz target of tests/fuzz calls it. SMALL: nothing in it runs often; RARE: nothing in these files does. An
# installation with greenlet and ml_dtypes may have 15 MB, so only loops over elements, which have options of their own, are
# compiled with more than -O2.
function(artifex_library name)
  cmake_parse_arguments(ARG "PARSES;SMALL" "" "SOURCES;RARE;DEPENDS;LIBRARIES" ${ARGN})
  set(target artifex_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  set(optimize_${target} -O2 ${ARTIFEX_UNALIGNED})
  if(ARG_SMALL)
    set(optimize_${target} -Os)
  endif()
  set(targets ${target})
  if(ARG_RARE)
    add_library(${target}_rare OBJECT ${ARG_RARE})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_rare>)
    set(optimize_${target}_rare -Os)
    list(APPEND targets ${target}_rare)
  endif()
  foreach(each IN LISTS targets)
    artifex_unity(${each} 16)
    target_compile_options(${each} PRIVATE "$<$<CONFIG:Release>:${optimize_${each}}>")
    if(ARG_PARSES AND ARTIFEX_FUZZ)
      target_compile_options(${each} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
    target_include_directories(${each} PUBLIC "${PROJECT_SOURCE_DIR}/cpp")
    target_link_libraries(${each}
      PUBLIC ${ARG_DEPENDS} ${ARTIFEX_FMT} Threads::Threads
      PRIVATE artifex_compile ${ARG_LIBRARIES})
  endforeach()
  if(ARTIFEX_BUILD_TESTS)
    file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cpp/${name}/*_test.cpp")
    if(tests)
      artifex_test(${name}_test SOURCES ${tests} ROOMS ${target})
    endif()
  endif()
endfunction()

# artifex_unity(<target> <files>)
# Compiles so many files of the target as one unit, or twice as many where few cores share the work.
function(artifex_unity target files)
  math(EXPR files "${files} * ${ARTIFEX_UNIT_SCALE}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ARTIFEX_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# artifex_test(<name> SOURCES <file>... ROOMS <target>... [PROPERTIES <of each test>...])
# One GoogleTest executable. The compiler optimises its own code little, several of its files are one unit, and all executables
# share one precompiled header: the tests took twice as long to compile as the core.
function(artifex_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS;PROPERTIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  artifex_unity(${name} 8)
  target_link_libraries(${name} PRIVATE ${ARG_ROOMS} artifex_compile GTest::gtest_main)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(${name} PRIVATE
    ARTIFEX_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" ARTIFEX_SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared")
  if(TARGET base_test AND NOT name STREQUAL base_test)
    target_precompile_headers(${name} REUSE_FROM base_test)
  else()
    target_precompile_headers(${name} PRIVATE
      <gtest/gtest.h> <fmt/format.h> <algorithm> <functional> <map> <memory> <optional> <string> <thread> <vector>)
  endif()
  if(ARTIFEX_SANITIZE)
    # One process, not one for each test: a sanitizer's start takes longer than most tests. The highest COST begins first.
    list(LENGTH ARG_SOURCES files)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES COST ${files} ${ARG_PROPERTIES} TIMEOUT 600)
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES PROPERTIES TIMEOUT 120 ${ARG_PROPERTIES})
  endif()
endfunction()
