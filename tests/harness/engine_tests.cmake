# SPDX-License-Identifier: Apache-2.0
exact_topk_test(engine_test
  SOURCES engine_paths_test.cpp engine_perturb_test.cpp engine_report_test.cpp
  LIBS exact_topk_harness)

# Groups are tested by ranks that really are several, so this one is started by mpirun.
add_executable(engine_group_test engine_group_test.cpp)
target_link_libraries(engine_group_test PRIVATE exact_topk_harness GTest::gtest)
set_target_properties(engine_group_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME engine_group_test.alone COMMAND engine_group_test)
add_test(NAME engine_group_test.four_ranks COMMAND mpirun --oversubscribe -np 4 $<TARGET_FILE:engine_group_test>)
set_tests_properties(engine_group_test.alone engine_group_test.four_ranks PROPERTIES TIMEOUT 120
  ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
