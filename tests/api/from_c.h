/* SPDX-License-Identifier: Apache-2.0
 *
 * The library as C11 sees it, for tests in C++ to ask. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* 0 where every call did what it must; else the line of the first that did not.
 */
int from_c_first_wrong_line(void);

#ifdef __cplusplus
}
#endif
