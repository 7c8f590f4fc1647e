# SPDX-License-Identifier: Apache-2.0
# Run at every build: writes OUTPUT, a header with the commit of SOURCE, "+changes" behind it where tracked files differ. The file is
# touched only when its text changes, so that nothing is compiled again for nothing.
set(commit unknown)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE hash RESULT_VARIABLE failed
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT failed)
  set(commit ${hash})
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
  if(changed)
    string(APPEND commit "+changes")
  endif()
endif()
set(text "// SPDX-License-Identifier: Apache-2.0\n// Made by harness/commit.cmake.\n#pragma once\n#define EXACT_TOPK_COMMIT \"${commit}\"\n#define EXACT_TOPK_VERSION \"${VERSION}\"\n#define EXACT_TOPK_COMPILER \"${COMPILER}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
