# SPDX-License-Identifier: Apache-2.0
# What lies outside the rooms in an installed tree. Each room installs its own programs and libraries.
#   include/exact_topk/candidate.h      the C ABI; found by find_package(exact_topk) or pkg-config
#   lib/libexact_topk.so                the library; find_package(exact_topk COMPONENTS library) or pkg-config libexact_topk
#   share/bash-completion/completions   of the programs
#   share/exact_topk/cases/*.suite      suites
#   share/exact_topk/examples           plug-ins and checks to copy from
#   share/doc/exact_topk                README and licence
include(CMakePackageConfigHelpers)

# Without the library the package is one header, so it is the same on every architecture and lies under share. What knows the
# library lies beside it.
set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/exact_topk)
set(pkgconfig_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
set(library_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/exact_topk)
set(library_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

add_library(exact_topk_candidate_header INTERFACE)
set_target_properties(exact_topk_candidate_header PROPERTIES EXPORT_NAME candidate)
target_include_directories(exact_topk_candidate_header INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS exact_topk_candidate_header EXPORT exact_topkTargets)
install(EXPORT exact_topkTargets NAMESPACE exact_topk:: DESTINATION ${package_dir})
install(EXPORT exact_topkLibraryTargets NAMESPACE exact_topk:: DESTINATION ${library_package_dir})

configure_package_config_file(cmake/exact_topkConfig.cmake.in ${PROJECT_BINARY_DIR}/exact_topkConfig.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS library_package_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/exact_topkConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/exact_topkConfig.cmake ${PROJECT_BINARY_DIR}/exact_topkConfigVersion.cmake
        DESTINATION ${package_dir})

# The prefix is found from the .pc file itself, so that an installed tree may move.
function(exact_topk_pkgconfig name dir)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${dir}
             OUTPUT_VARIABLE prefix_from_pkgconfig)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${dir})
endfunction()
exact_topk_pkgconfig(exact_topk ${pkgconfig_dir})
exact_topk_pkgconfig(libexact_topk ${library_pkgconfig_dir})

install(FILES kernels/candidate.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/exact_topk)
install(DIRECTORY cases/ DESTINATION ${CMAKE_INSTALL_DATADIR}/exact_topk/cases FILES_MATCHING PATTERN "*.suite")
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/exact_topk/examples)
foreach(program check_topk compare_dumps time_topk)
  install(FILES completions/exact_topk.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ${program})
endforeach()
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/exact_topk)
