/* SPDX-License-Identifier: Apache-2.0 */
/* Callgrind's client requests as functions, for ctypes. Outside of valgrind they do nothing. */
#include <valgrind/callgrind.h>

int under_valgrind(void) { return (int)RUNNING_ON_VALGRIND; }
void start_counting(void) {
  CALLGRIND_ZERO_STATS;
  CALLGRIND_START_INSTRUMENTATION;
}
void stop_counting(void) { CALLGRIND_STOP_INSTRUMENTATION; }
void write_counts(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }
