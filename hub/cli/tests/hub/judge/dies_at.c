/* Loaded before the C library: the process is killed right before the call on files whose number SEAWALL_DIES_AT names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void count(void) {
    static int made;
    const char *at = getenv("SEAWALL_DIES_AT");
    if (at && __atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST) == atoi(at)) kill(getpid(), SIGKILL);
}

#define CALL(type, name, parameters, arguments)                                        \
    type name parameters {                                                             \
        static type(*next) parameters;                                                 \
        if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name);                 \
        count();                                                                       \
        return next arguments;                                                         \
    }

#define OPEN(name)                                                                     \
    int name(const char *path, int flags, ...) {                                       \
        static int (*next)(const char *, int, ...);                                    \
        if (!next) next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);    \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        mode_t mode = va_arg(rest, mode_t);                                            \
        va_end(rest);                                                                  \
        if (flags & O_CREAT) count();                                                  \
        return next(path, flags, mode);                                                \
    }

OPEN(open)
OPEN(open64)
CALL(ssize_t, write, (int fd, const void *bytes, size_t length), (fd, bytes, length))
CALL(ssize_t, pwrite, (int fd, const void *bytes, size_t length, off_t at), (fd, bytes, length, at))
CALL(ssize_t, pwrite64, (int fd, const void *bytes, size_t length, off64_t at), (fd, bytes, length, at))
CALL(int, ftruncate, (int fd, off_t length), (fd, length))
CALL(int, ftruncate64, (int fd, off64_t length), (fd, length))
CALL(int, fsync, (int fd), (fd))
CALL(int, fdatasync, (int fd), (fd))
CALL(int, rename, (const char *from, const char *to), (from, to))
CALL(int, unlink, (const char *path), (path))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode))
