# SPDX-License-Identifier: Apache-2.0
# artifex_layer(<room> [SMALL] SOURCES <file>... [DEPENDS <room>...] [LIBRARIES <target>...])
# One static library a room. DEPENDS is the architecture: tools/check_layers.py reads it from here and checks the
# includes against it. Tests of a room are tests/cpp/<room>/*_test.cpp, one executable.
function(artifex_layer room)
  cmake_parse_arguments(ARG "SMALL" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  set(target artifex_${room})
  list(TRANSFORM ARG_SOURCES PREPEND "${room}/")
  add_library(${target} STATIC ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY ARTIFEX_ROOMS ${room})
  if(ARG_SMALL)  # nothing in it runs often: a wheel has 5 MB for all
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/cpp")
  list(TRANSFORM ARG_DEPENDS PREPEND artifex_ OUTPUT_VARIABLE rooms)
  target_link_libraries(${target}
    PUBLIC ${rooms} ${ARTIFEX_FMT} Threads::Threads
    PRIVATE artifex_compile ${ARG_LIBRARIES})
  if(ARTIFEX_BUILD_TESTS)
    file(GLOB tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cpp/${room}/*_test.cpp")
    if(tests)
      add_executable(${room}_test ${tests})
      target_link_libraries(${room}_test PRIVATE ${target} artifex_compile GTest::gtest_main)
      target_compile_definitions(${room}_test PRIVATE
        ARTIFEX_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" ARTIFEX_SHARED_DATA="${PROJECT_SOURCE_DIR}/../shared")
      gtest_discover_tests(${room}_test DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES PROPERTIES TIMEOUT 120)
    endif()
  endif()
endfunction()
