/* child.h: finds what this process has forked, for tests of processes that it does not know of. */
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A child of this process; 0: there is none. One that the system is reaping is none. */
static inline pid_t find_child(void) {
  pid_t found = 0;
  DIR *folder = opendir("/proc");
  if (!folder) abort();
  for (const struct dirent *entry; !found && (entry = readdir(folder));) {
    char path[64];
    int pid, parent = 0;
    char state;
    if (sscanf(entry->d_name, "%d", &pid) != 1) continue;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file) continue;
    const int read = fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent);
    if (read == 2 && parent == getpid() && state != 'X') found = pid;
    fclose(file);
  }
  closedir(folder);
  return found;
}
