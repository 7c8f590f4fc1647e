// SPDX-License-Identifier: Apache-2.0

// Compiled into every AddressSanitizer program that links MPI: Open MPI leaks
// on its own, so these programs look for no leaks unless ASAN_OPTIONS asks them
// to. Programs without MPI keep the sanitizer's default, which is to look.

// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer's name
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
