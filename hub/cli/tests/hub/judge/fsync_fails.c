/* Loaded before the C library: while the file that SEAWALL_FSYNC_FAILS names exists, fsync fails for every file whose path
   ends with the text in it, as on a disk that can't write. Nothing is synced then. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fails(int fd) {
    char suffix[256], link[64], path[4096];
    const char *trigger = getenv("SEAWALL_FSYNC_FAILS");
    int file = trigger ? open(trigger, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t wanted = read(file, suffix, sizeof suffix);
    close(file);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t found = readlink(link, path, sizeof path);
    if (wanted < 0 || found < wanted) return 0;
    return memcmp(path + found - wanted, suffix, wanted) == 0;
}

static int sync_or_fail(int fd, long call) {
    if (fails(fd)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, fd);
}

int fsync(int fd) { return sync_or_fail(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_or_fail(fd, SYS_fdatasync); }
