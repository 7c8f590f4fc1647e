# SPDX-License-Identifier: Apache-2.0
set(EXACT_TOPK_JUDGING_SOURCES)
