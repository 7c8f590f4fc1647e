# SPDX-License-Identifier: Apache-2.0
# The sources that run and judge cases; harness/CMakeLists.txt has the engine's.
set(EXACT_TOPK_JUDGING_SOURCES
  abi.cpp
  checks/bitwise.cpp
  checks/check_log.cpp
  checks/close.cpp
  checks/list.cpp
  checks/untouched.cpp
  controls.cpp
  judge.cpp
  judge_launch.cpp
  launch_dump.cpp
  launch_inputs.cpp
  launch_outputs.cpp
  loader.cpp
  open_candidate.cpp
  paths.cpp
  reference_share.cpp
  run_case.cpp
  run_launch_case.cpp
  run_score_case.cpp
  run_select_case.cpp
  snapshot.cpp
  timing.cpp
  trust.cpp)
