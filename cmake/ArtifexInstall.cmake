# SPDX-License-Identifier: Apache-2.0
# The C++ package: public headers, the shared library of the runtime, and what find_package(artifex_devices) reads.
# Below the prefix, which for a wheel is the folder of the Python package.
include(CMakePackageConfigHelpers)
if(ARTIFEX_BUILD_PYTHON)
  set(ARTIFEX_CMAKE_DIR cmake)
else()
  set(ARTIFEX_CMAKE_DIR lib/cmake/artifex_devices)
endif()

# The public headers of all rooms, and what they include.
get_property(headers GLOBAL PROPERTY ARTIFEX_PUBLIC_HEADERS)
set(public_headers)
while(headers)
  list(POP_FRONT headers header)
  set(path "${PROJECT_SOURCE_DIR}/cpp/${header}")
  if(NOT path IN_LIST public_headers)
    list(APPEND public_headers "${path}")
    file(STRINGS "${path}" includes REGEX "^#include [<\"](artifex_devices|fmt|hwloc|Eigen)[/.]")
    if("${includes}" MATCHES "<")
      message(FATAL_ERROR "${header} is public and includes ${includes}; include that in the sources only")
    endif()
    list(TRANSFORM includes REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND headers ${includes})
  endif()
endwhile()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_headers})

# The whole runtime as one shared library: both extensions and programs of others that are linked to it share its state.
add_library(artifex_devices SHARED)
get_property(rooms GLOBAL PROPERTY ARTIFEX_ROOMS)
foreach(room IN LISTS rooms)
  target_sources(artifex_devices PRIVATE $<TARGET_OBJECTS:artifex_${room}>)
  if(TARGET artifex_${room}_rare)
    target_sources(artifex_devices PRIVATE $<TARGET_OBJECTS:artifex_${room}_rare>)
  endif()
endforeach()
target_sources(artifex_devices PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/cpp" FILES ${public_headers})
target_compile_features(artifex_devices PUBLIC cxx_std_20)
target_link_libraries(artifex_devices
  PUBLIC Threads::Threads
  PRIVATE artifex_compile ${ARTIFEX_FMT} PkgConfig::hwloc)
set(HAS_OWN_FMT OFF)
if(ARTIFEX_FMT_SOURCE)
  set(HAS_OWN_FMT ON)
endif()
# Only our own names are exported: another hwloc or fmt in the process must neither see nor replace ours.
set(exports "${CMAKE_CURRENT_LIST_DIR}/exports.map")
target_link_options(artifex_devices PRIVATE
  "LINKER:--version-script=${exports}" LINKER:-Bsymbolic LINKER:--exclude-libs,ALL LINKER:--gc-sections LINKER:--as-needed)
set_target_properties(artifex_devices PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS "${exports}")

install(TARGETS artifex_devices EXPORT artifex_devices
  LIBRARY DESTINATION lib FILE_SET HEADERS DESTINATION include)
install(EXPORT artifex_devices
  NAMESPACE artifex_devices:: FILE artifex_devices-targets.cmake DESTINATION ${ARTIFEX_CMAKE_DIR})
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/artifex_devices-config.cmake.in" "${PROJECT_BINARY_DIR}/artifex_devices-config.cmake"
  INSTALL_DESTINATION ${ARTIFEX_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/artifex_devices-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(
  FILES "${PROJECT_BINARY_DIR}/artifex_devices-config.cmake"
        "${PROJECT_BINARY_DIR}/artifex_devices-config-version.cmake"
  DESTINATION ${ARTIFEX_CMAKE_DIR})

if(ARTIFEX_HWLOC_ROOT)
  install(FILES "${ARTIFEX_HWLOC_ROOT}/COPYING" DESTINATION licenses RENAME hwloc.txt)
endif()
if(ARTIFEX_FMT_SOURCE)
  cmake_path(GET ARTIFEX_FMT_SOURCE PARENT_PATH fmt_src)
  install(FILES "${fmt_src}/../LICENSE.rst" DESTINATION licenses RENAME fmt.txt)
endif()
