# SPDX-License-Identifier: Apache-2.0
# One interface target carries every flag that all of the project's code is built with.
add_library(exact_topk_options INTERFACE)
target_include_directories(exact_topk_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(exact_topk_options INTERFACE cxx_std_20)

# SPEC section 3: every product and sum is rounded on its own. g++ contracts by default once FMA is on.
target_compile_options(exact_topk_options INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow
                       -Wnon-virtual-dtor -Wold-style-cast -Wcast-align -Wunused -Woverloaded-virtual)

# Portable binaries: the least processor that every build and lent machine has.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(exact_topk_options INTERFACE -march=x86-64-v3)
endif()
if(EXACT_TOPK_WERROR)
  target_compile_options(exact_topk_options INTERFACE -Werror)
endif()

if(EXACT_TOPK_SANITIZER STREQUAL "address")
  target_compile_options(exact_topk_options INTERFACE -fsanitize=address,undefined
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(exact_topk_options INTERFACE -fsanitize=address,undefined)
elseif(EXACT_TOPK_SANITIZER STREQUAL "thread")
  target_compile_options(exact_topk_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(exact_topk_options INTERFACE -fsanitize=thread)
elseif(EXACT_TOPK_SANITIZER)
  message(FATAL_ERROR "EXACT_TOPK_SANITIZER is '${EXACT_TOPK_SANITIZER}'; it is empty, address or thread")
endif()

# Everything is instrumented, so that the fuzzers see the branches of what they test.
if(EXACT_TOPK_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "EXACT_TOPK_FUZZ needs clang, and the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  target_compile_options(exact_topk_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# exact_topk_library(NAME SOURCES... [LIBS...]): a static library of one of the house's rooms.
function(exact_topk_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC exact_topk_options ${arg_LIBS})
endfunction()
