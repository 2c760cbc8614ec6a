/* Stands before the C library, by LD_PRELOAD: the n-th call on files of a name fails, is cut short or kills.

   What is to fail is written to a file of which every process has a view; see faulty_calls.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { ERROR = 1, SHORT = 2, TORN = 3, KILL_TORN = 4, KILL_AFTER = 5 };

struct control {
    int64_t armed;   /* number of the call, 0 for none */
    int64_t kind;    /* what happens there */
    int64_t number;  /* of the error */
    int64_t lasting; /* whether every later call fails too */
    int64_t calls;   /* seen since it was armed */
    int64_t fired;   /* that failed */
    char what[120];  /* the first that failed: name of the call and of the file */
};

static struct control *control;
static const char *part;

__attribute__((constructor)) static void open_control(void) {
    const char *path = getenv("FAULTY_CALLS");
    part = getenv("FAULTY_FILES");
    int file = path && part ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *view = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (view != MAP_FAILED) control = view;
    close(file);
}

/* The kind of fault that happens to this call, 0 for none. */
static int64_t meet(const char *call, int file) {
    if (!control || !control->armed) return 0;
    if (control->kind >= KILL_TORN && *call == 'p' && call[1] == 'r') return 0; /* a read changes no disk */
    char link[40], path[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    if (!name || !strstr(name, part)) return 0;
    int64_t now = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    if (now != control->armed && !(control->lasting && now > control->armed)) return 0;
    if (__atomic_fetch_add(&control->fired, 1, __ATOMIC_SEQ_CST) == 0)
        snprintf(control->what, sizeof control->what, "%s %s", call, name + 1);
    return control->kind;
}

static int64_t fail(void) {
    errno = (int)control->number;
    return -1;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A write: whole, half of it, or none. */
#define WRITE(name, signature, whole, half) \
    ssize_t name signature { \
        REAL(name); \
        switch (meet(#name, file)) { \
        case ERROR: return fail(); \
        case SHORT: return half; \
        case TORN: (void)!half; return fail(); \
        case KILL_TORN: (void)!half; die(); return -1; \
        case KILL_AFTER: (void)!whole; die(); return -1; \
        default: return whole; \
        } \
    }

/* Another call: it happens or not. */
#define CALL(type, name, signature, whole) \
    type name signature { \
        REAL(name); \
        switch (meet(#name, file)) { \
        case ERROR: case TORN: return (type)fail(); \
        case KILL_TORN: die(); return -1; \
        case KILL_AFTER: (void)!whole; die(); return -1; \
        default: return whole; \
        } \
    }

WRITE(write, (int file, const void *from, size_t bytes), real(file, from, bytes), real(file, from, bytes / 2))
WRITE(pwrite, (int file, const void *from, size_t bytes, off_t at), real(file, from, bytes, at), real(file, from, bytes / 2, at))
WRITE(pwrite64, (int file, const void *from, size_t bytes, off64_t at), real(file, from, bytes, at), real(file, from, bytes / 2, at))
CALL(ssize_t, pread, (int file, void *to, size_t bytes, off_t at), real(file, to, bytes, at))
CALL(ssize_t, pread64, (int file, void *to, size_t bytes, off64_t at), real(file, to, bytes, at))
CALL(int, fsync, (int file), real(file))
CALL(int, fdatasync, (int file), real(file))
CALL(int, ftruncate, (int file, off_t to), real(file, to))
CALL(int, ftruncate64, (int file, off64_t to), real(file, to))
