/* Loaded before the C library: while the file that SEAWALL_QUOTA names exists, no file below the folder that is named in it can
   grow, as when a quota is used up. What is in a file already can be written over. With SEAWALL_QUOTA_ONCE one write is refused, and
   then the file goes: there is room again before anybody can look. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int refused(int fd, off_t end) {
    char folder[4096], link[64], path[4096];
    struct stat about;
    const char *trigger = getenv("SEAWALL_QUOTA");
    int file = trigger ? open(trigger, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t wanted = read(file, folder, sizeof folder);
    close(file);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t found = readlink(link, path, sizeof path);
    if (wanted <= 0 || found < wanted || memcmp(path, folder, wanted) != 0) return 0;
    if (fstat(fd, &about) != 0 || end <= about.st_size) return 0;
    if (getenv("SEAWALL_QUOTA_ONCE")) unlink(trigger);
    errno = EDQUOT;
    return 1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) {
    if (refused(fd, at + (off_t)count)) return -1;
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return pwrite64(fd, bytes, count, at); }

ssize_t write(int fd, const void *bytes, size_t count) {
    off_t at = lseek(fd, 0, SEEK_CUR);
    if (at >= 0 && refused(fd, at + (off_t)count)) return -1;
    return syscall(SYS_write, fd, bytes, count);
}
