# SPDX-License-Identifier: Apache-2.0
exact_topk_test(capture_test
  SOURCES capture_check_test.cpp capture_diagnose_test.cpp capture_file.cpp capture_reader_test.cpp
  LIBS exact_topk_harness
  LABELS harness)
