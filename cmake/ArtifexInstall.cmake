# SPDX-License-Identifier: Apache-2.0
# The C++ package: headers, one static library of all rooms, and what find_package(artifex_devices) reads.
# Below the prefix, which for a wheel is the folder of the Python package.
include(CMakePackageConfigHelpers)
if(ARTIFEX_BUILD_PYTHON)
  set(ARTIFEX_CMAKE_DIR cmake)
else()
  set(ARTIFEX_CMAKE_DIR lib/cmake/artifex_devices)
endif()

add_library(artifex_devices STATIC)
get_property(rooms GLOBAL PROPERTY ARTIFEX_ROOMS)
foreach(room IN LISTS rooms)
  target_sources(artifex_devices PRIVATE $<TARGET_OBJECTS:artifex_${room}>)
endforeach()
target_include_directories(artifex_devices PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp> $<INSTALL_INTERFACE:include>)
target_compile_features(artifex_devices PUBLIC cxx_std_20)
target_compile_definitions(artifex_devices PUBLIC $<$<BOOL:${ARTIFEX_CHECK_LOCKS}>:ARTIFEX_CHECK_LOCKS>)
if(ARTIFEX_FMT_SOURCE)
  target_sources(artifex_devices PRIVATE $<TARGET_OBJECTS:artifex_fmt>)
  set(fmt $<BUILD_INTERFACE:artifex_fmt> $<INSTALL_INTERFACE:fmt::fmt-header-only>)
else()
  set(fmt fmt::fmt)
endif()
target_link_libraries(artifex_devices
  PUBLIC ${fmt} Threads::Threads
  PRIVATE $<BUILD_INTERFACE:PkgConfig::hwloc> $<INSTALL_INTERFACE:artifex_devices::hwloc>)
set_target_properties(artifex_devices PROPERTIES LINKER_LANGUAGE CXX)

install(TARGETS artifex_devices EXPORT artifex_devices ARCHIVE DESTINATION lib)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/cpp/artifex_devices" DESTINATION include FILES_MATCHING PATTERN "*.h")
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
  install(FILES "${ARTIFEX_HWLOC_ROOT}/lib/libhwloc.a" DESTINATION lib)
  install(FILES "${ARTIFEX_HWLOC_ROOT}/COPYING" DESTINATION licenses RENAME hwloc.txt)
endif()
if(ARTIFEX_FMT_SOURCE)
  cmake_path(GET ARTIFEX_FMT_SOURCE PARENT_PATH fmt_src)
  install(FILES "${fmt_src}/../LICENSE.rst" DESTINATION licenses RENAME fmt.txt)
endif()
