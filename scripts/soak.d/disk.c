/*
 * A disk that remembers and that fails, for a program that it is preloaded into (LD_PRELOAD).
 *
 * Only calls on files named cache.mdb or cache.mdb.new are looked at. Two things, each asked for by a
 * variable:
 *
 *   LARDER_DISK_LOG=FILE     every change of such a file is appended to FILE in the order in which it
 *                            was made, with its bytes, and every synchronisation at its end: what a
 *                            judge needs to say what a disk may hold when the power fails.
 *   LARDER_DISK_FAULTS=FILE  calls fail as FILE says (struct faults), which may be changed at any
 *                            time: it is mapped.
 *
 * cc -shared -fPIC -O2 -o libdisk.so disk.c -ldl -lpthread
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { KIND_WRITE = 1, KIND_SYNC = 2, KIND_TRUNCATE = 3, KIND_FAILED_SYNC = 4 };

/* One record of the log; the bytes of a write follow. */
struct record {
    uint32_t kind;
    uint32_t is_synchronous; /* the descriptor was opened with O_DSYNC or O_SYNC */
    uint64_t inode;
    uint64_t offset; /* of a truncation: the new size */
    uint64_t length;
};

enum operation { OP_WRITE = 1, OP_SYNC = 2, OP_TRUNCATE = 4, OP_READ = 8, OP_OPEN = 16 };

/* What fails now; all fields little-endian. */
struct faults {
    uint32_t operations; /* which of `enum operation` */
    uint32_t error;      /* errno; 0: writes are short instead */
    uint32_t every;      /* each such call, each second, ... */
    uint32_t unused;
    uint64_t calls;      /* counted here */
    uint64_t injected;   /* counted here */
};

#define DESCRIPTORS 4096
enum mark { MARK_NONE, MARK_PLAIN, MARK_SYNCHRONOUS };
static unsigned char marks[DESCRIPTORS];
static int log_descriptor = -1;
static volatile struct faults *faults;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("LARDER_DISK_LOG");
    if (path)
        log_descriptor = (int)syscall(
            SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    path = getenv("LARDER_DISK_FAULTS");
    if (path) {
        int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
        if (descriptor >= 0) {
            void *map = mmap(
                NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
            if (map != MAP_FAILED) faults = map;
            syscall(SYS_close, descriptor);
        }
    }
}

static int is_ours(int descriptor) {
    return descriptor >= 0 && descriptor < DESCRIPTORS && marks[descriptor] != MARK_NONE;
}

/* A new file has its own name no sooner than it is whole. */
static int names_cache(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path;
    return name && (strcmp(name, "cache.mdb") == 0 || strcmp(name, "cache.mdb.new") == 0);
}

static void append(const void *bytes, size_t count) {
    const char *next = bytes;
    while (count > 0) {
        long done = syscall(SYS_write, log_descriptor, next, count);
        if (done <= 0) return;
        next += done;
        count -= (size_t)done;
    }
}

/* Called with the lock held. */
static void note(enum kind kind, int descriptor, uint64_t offset, const struct iovec *parts,
                 int count, size_t length) {
    if (log_descriptor < 0) return;
    struct stat status;
    memset(&status, 0, sizeof status);
    fstat(descriptor, &status);
    struct record record = {kind, marks[descriptor] == MARK_SYNCHRONOUS, status.st_ino, offset,
                            length};
    append(&record, sizeof record);
    for (int i = 0; i < count && length > 0; i++) {
        size_t part = parts[i].iov_len < length ? parts[i].iov_len : length;
        append(parts[i].iov_base, part);
        length -= part;
    }
}

/* 0: goes on; 1: fails with errno set; 2: is cut short. */
static int fails(enum operation operation) {
    if (!faults || !(faults->operations & operation)) return 0;
    uint64_t call = __atomic_add_fetch(&faults->calls, 1, __ATOMIC_RELAXED);
    uint32_t every = faults->every;
    if (every > 1 && call % every != 0) return 0;
    __atomic_add_fetch(&faults->injected, 1, __ATOMIC_RELAXED);
    if (faults->error == 0) return operation == OP_WRITE ? 2 : 0;
    errno = (int)faults->error;
    return 1;
}

static ssize_t written(int descriptor, const struct iovec *parts, int count, off_t offset,
                       int moves) {
    struct iovec short_part;
    int fault = fails(OP_WRITE);
    if (fault == 1) return -1;
    if (fault == 2 && count > 0) {
        short_part.iov_base = parts[0].iov_base;
        short_part.iov_len = parts[0].iov_len / 2;
        parts = &short_part;
        count = 1;
    }
    pthread_mutex_lock(&lock);
    ssize_t done = moves ? REAL(writev)(descriptor, parts, count)
                         : REAL(pwritev)(descriptor, parts, count, offset);
    int error = errno;
    if (done > 0)
        note(KIND_WRITE, descriptor, (uint64_t)offset, parts, count, (size_t)done);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    if (!is_ours(descriptor)) return REAL(write)(descriptor, bytes, count);
    struct iovec part = {(void *)bytes, count};
    return written(descriptor, &part, 1, lseek(descriptor, 0, SEEK_CUR), 1);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (!is_ours(descriptor)) return REAL(writev)(descriptor, parts, count);
    return written(descriptor, parts, count, lseek(descriptor, 0, SEEK_CUR), 1);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    if (!is_ours(descriptor)) return REAL(pwrite)(descriptor, bytes, count, offset);
    struct iovec part = {(void *)bytes, count};
    return written(descriptor, &part, 1, offset, 0);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    return pwrite(descriptor, bytes, count, offset);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    if (!is_ours(descriptor)) return REAL(pwritev)(descriptor, parts, count, offset);
    return written(descriptor, parts, count, offset, 0);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset) {
    return pwritev(descriptor, parts, count, offset);
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
    if (is_ours(descriptor) && fails(OP_READ)) return -1;
    return REAL(pread)(descriptor, bytes, count, offset);
}

ssize_t pread64(int descriptor, void *bytes, size_t count, off64_t offset) {
    return pread(descriptor, bytes, count, offset);
}

static int synchronized(int descriptor, int result) {
    int error = errno;
    pthread_mutex_lock(&lock);
    note(result == 0 ? KIND_SYNC : KIND_FAILED_SYNC, descriptor, 0, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fdatasync(int descriptor) {
    if (!is_ours(descriptor)) return REAL(fdatasync)(descriptor);
    return synchronized(descriptor, fails(OP_SYNC) ? -1 : REAL(fdatasync)(descriptor));
}

int fsync(int descriptor) {
    if (!is_ours(descriptor)) return REAL(fsync)(descriptor);
    return synchronized(descriptor, fails(OP_SYNC) ? -1 : REAL(fsync)(descriptor));
}

int ftruncate(int descriptor, off_t size) {
    if (!is_ours(descriptor)) return REAL(ftruncate)(descriptor, size);
    if (fails(OP_TRUNCATE)) return -1;
    pthread_mutex_lock(&lock);
    int result = REAL(ftruncate)(descriptor, size);
    int error = errno;
    if (result == 0) note(KIND_TRUNCATE, descriptor, (uint64_t)size, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int ftruncate64(int descriptor, off64_t size) { return ftruncate(descriptor, size); }

static int opened(const char *path, int flags, int descriptor) {
    if (descriptor >= 0 && descriptor < DESCRIPTORS)
        marks[descriptor] = !names_cache(path) ? MARK_NONE
                            : flags & (O_DSYNC | O_SYNC) ? MARK_SYNCHRONOUS
                                                         : MARK_PLAIN;
    return descriptor;
}

static int refused(const char *path, int flags) {
    int mode = flags & O_ACCMODE;
    return names_cache(path) && mode != O_RDONLY && fails(OP_OPEN);
}

#define MODE_OF(flags)                                                                             \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                                                       \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                              \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags)
    if (refused(path, flags)) return -1;
    return opened(path, flags, REAL(open)(path, flags, mode));
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags)
    if (refused(path, flags)) return -1;
    return opened(path, flags | O_LARGEFILE, REAL(open64)(path, flags, mode));
}

int openat(int directory, const char *path, int flags, ...) {
    MODE_OF(flags)
    if (refused(path, flags)) return -1;
    return opened(path, flags, REAL(openat)(directory, path, flags, mode));
}

int openat64(int directory, const char *path, int flags, ...) {
    MODE_OF(flags)
    if (refused(path, flags)) return -1;
    return opened(path, flags, REAL(openat64)(directory, path, flags, mode));
}

int close(int descriptor) {
    if (descriptor >= 0 && descriptor < DESCRIPTORS) marks[descriptor] = MARK_NONE;
    return REAL(close)(descriptor);
}
