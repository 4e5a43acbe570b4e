"""A wall clock that can be set for some processes alone: a small library, loaded first, adds an offset to it.

The monotonic clock stays as it is: nobody can set that of a real machine either.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const long long *offset;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_offset(void) {
  int file = open(getenv("STOKER_CLOCK_OFFSET"), O_RDONLY);
  offset = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *found) {
  if (!real_gettime) open_offset();
  int failed = real_gettime(clock, found);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) found->tv_sec += *offset;
  return failed;
}

int gettimeofday(struct timeval *found, void *zone) {
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  found->tv_sec = now.tv_sec;
  found->tv_usec = now.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *found) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (found) *found = now.tv_sec;
  return now.tv_sec;
}
"""


class WallClock:
    """The wall clock of the processes that are started with `environment`; needs a C compiler."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        source, library, self._offset = (directory / name for name in ("clock.c", "clock.so", "offset"))
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
        self.set(0)
        self.environment = {"LD_PRELOAD": str(library), "STOKER_CLOCK_OFFSET": str(self._offset)}

    def set(self, days: int) -> None:
        """Put it so many days ahead of the machine's, or behind."""
        # In place: the processes have mapped this file.
        with self._offset.open("r+b" if self._offset.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("<q", days * 86_400))
