# SPDX-License-Identifier: Apache-2.0
# Every outside library, all from Debian 12 (./dev setup installs them).
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost REQUIRED COMPONENTS context)
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI REQUIRED COMPONENTS CXX)

# Random123 is headers alone and ships no package file.
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
add_library(exact_topk_random123 INTERFACE)
target_include_directories(exact_topk_random123 SYSTEM INTERFACE ${RANDOM123_INCLUDE_DIR})

if(EXACT_TOPK_TESTS)
  find_package(GTest REQUIRED)
  find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_library(exact_topk_rapidcheck INTERFACE)
  target_include_directories(exact_topk_rapidcheck SYSTEM INTERFACE ${RAPIDCHECK_INCLUDE_DIR})
  target_link_libraries(exact_topk_rapidcheck INTERFACE ${RAPIDCHECK_LIBRARY})
endif()
if(EXACT_TOPK_BENCH)
  find_package(benchmark REQUIRED)
endif()
