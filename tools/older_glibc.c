// SPDX-License-Identifier: Apache-2.0
// Functions that this machine's headers call, and glibc 2.28 lacks (tools/older_libraries.py).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

enum { kSecond = 1000000000 };  // in nanoseconds

// Version of struct stat.
#ifdef __x86_64__
enum { kStatVersion = 1 };
#else
enum { kStatVersion = 0 };
#endif

int __xstat(int version, const char* path, struct stat* out);
int __lxstat(int version, const char* path, struct stat* out);
int __fxstat(int version, int file, struct stat* out);
int __fxstatat(int version, int folder, const char* path, struct stat* out, int flags);

int stat(const char* path, struct stat* out) { return __xstat(kStatVersion, path, out); }
int lstat(const char* path, struct stat* out) { return __lxstat(kStatVersion, path, out); }
int fstat(int file, struct stat* out) { return __fxstat(kStatVersion, file, out); }
int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return __fxstatat(kStatVersion, folder, path, out, flags);
}

// libstdc++ counts references without atomic operations while this is true. Other threads may run at any time here.
char __libc_single_threaded = 0;

typedef int ClockWait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static ClockWait* clock_wait;
__attribute__((constructor)) static void find_clock_wait(void) {
  clock_wait = (ClockWait*)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
}

// glibc before 2.30 waits only until a time of the system's clock, which may be set meanwhile. libstdc++ looks at its own
// clock after a wait, and waits again.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* end) {
  if (clock_wait != NULL) return clock_wait(condition, mutex, clock, end);
  struct timespec now, system_now;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &system_now);
  const long long seconds = end->tv_sec - now.tv_sec + system_now.tv_sec;
  const long long nanoseconds = 2 * kSecond + end->tv_nsec - now.tv_nsec + system_now.tv_nsec;  // not negative
  const struct timespec system_end = {seconds - 2 + nanoseconds / kSecond, nanoseconds % kSecond};
  return pthread_cond_timedwait(condition, mutex, &system_end);
}
