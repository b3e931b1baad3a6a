// A module map names its header relative to itself, and the system's lies elsewhere. What else is
// here must be C: a jump out of an assertion. Static functions with static state: only one
// Swift file, AssertedCalls.swift, may use those of the first part.
#include <lmdb.h>
#include <setjmp.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

// A declaration of the C library that only _GNU_SOURCE shows, which cannot be defined for a module
// that was built without it.
ssize_t preadv2(int descriptor, const struct iovec *vectors, int count, off_t offset, int flags);

// RWF_NOWAIT of <linux/fs.h>: EAGAIN instead of waiting for the disk.
static const int larder_rwf_nowait = 0x00000008;

// LMDB ends the process where it finds its own state impossible: mdb_env_set_assert is the only way
// to come first, and its callback must not return. So each call that looks at pages leaves a place
// to come back to. Only LMDB's own frames lie between, none of which owns anything but memory; the
// transaction is lost all the same, and must not be touched again.
enum { LARDER_ASSERTION_FAILED = -39999 };

// A function's own variable, because the importer gives no room to a file's.
static inline jmp_buf **larder_landing(void) {
    static _Thread_local jmp_buf *landing;
    return &landing;
}

static void larder_assertion_failed(MDB_env *env, const char *text) {
    (void)env;
    (void)text;
    jmp_buf *landing = *larder_landing();
    if (landing) longjmp(*landing, 1);
}

static inline int larder_catch_assertions(MDB_env *env) {
    return mdb_env_set_assert(env, larder_assertion_failed);
}

#define LARDER_ASSERTED(call)               \
    jmp_buf here;                           \
    jmp_buf *volatile outer = *larder_landing(); \
    volatile int code = LARDER_ASSERTION_FAILED; \
    if (_setjmp(here) == 0) {               \
        *larder_landing() = &here;          \
        code = (call);                      \
    }                                       \
    *larder_landing() = outer;              \
    return code;

static inline int larder_get(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value) {
    LARDER_ASSERTED(mdb_get(txn, dbi, key, value))
}

static inline int larder_put(
    MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned int flags) {
    LARDER_ASSERTED(mdb_put(txn, dbi, key, value, flags))
}

static inline int larder_del(MDB_txn *txn, MDB_dbi dbi, MDB_val *key) {
    LARDER_ASSERTED(mdb_del(txn, dbi, key, NULL))
}

static inline int larder_cursor_get(
    MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op operation) {
    LARDER_ASSERTED(mdb_cursor_get(cursor, key, value, operation))
}

static inline int larder_cursor_del(MDB_cursor *cursor) {
    LARDER_ASSERTED(mdb_cursor_del(cursor, 0))
}

static inline int larder_commit(MDB_txn *txn) {
    LARDER_ASSERTED(mdb_txn_commit(txn))
}

static inline int larder_dbi_open(
    MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi) {
    LARDER_ASSERTED(mdb_dbi_open(txn, name, flags, dbi))
}

// The second part: what the disk does not give. Only MapGuard.swift may use it.
//
// A page of a map that cannot be read (EIO), or that lies behind the end of a file which was cut
// short, is SIGBUS to whoever touches it. The handler puts zeros there and counts. It calls nothing
// but mmap and sigaction, and reads the table without a lock: a slot's start is written last and
// cleared first.
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LARDER_GUARDED_MAPS = 4096 };

struct larder_guards {
    uintptr_t system_page;
    struct sigaction previous;
    struct {
        int is_taken;
        int is_writable;
        uintptr_t start;
        uintptr_t end;
        unsigned int faults;
    } maps[LARDER_GUARDED_MAPS];
};

static inline struct larder_guards *larder_guards(void) {
    static struct larder_guards guards;
    return &guards;
}

static void larder_pass_on(int number, siginfo_t *info, void *context) {
    struct sigaction *previous = &larder_guards()->previous;
    if (previous->sa_flags & SA_SIGINFO) {
        previous->sa_sigaction(number, info, context);
    } else if (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN) {
        // The instruction is tried again, and ends the process as if nobody had looked.
        struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(number, &usual, NULL);
    } else {
        previous->sa_handler(number);
    }
}

static void larder_bus_error(int number, siginfo_t *info, void *context) {
    int saved = errno;
    uintptr_t address = (uintptr_t)info->si_addr;
    for (int i = 0; i < LARDER_GUARDED_MAPS; i++) {
        uintptr_t start = __atomic_load_n(&larder_guards()->maps[i].start, __ATOMIC_ACQUIRE);
        if (start == 0 || address < start || address >= larder_guards()->maps[i].end) continue;
        int access = PROT_READ | (larder_guards()->maps[i].is_writable ? PROT_WRITE : 0);
        void *page = (void *)(address & ~(larder_guards()->system_page - 1));
        void *zeros = mmap(
            page, larder_guards()->system_page, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (zeros == MAP_FAILED) break;
        __atomic_add_fetch(&larder_guards()->maps[i].faults, 1, __ATOMIC_RELEASE);
        errno = saved;
        return;
    }
    errno = saved;
    larder_pass_on(number, info, context);
}

// Once a process. SA_NODEFER: a second fault while the first is passed on is not to end it without a
// word of its handler's.
static inline int larder_guard_install(void) {
    larder_guards()->system_page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    action.sa_sigaction = larder_bus_error;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &larder_guards()->previous);
}

// The slot's number; -1 where all are taken.
static inline int larder_guard_add(uintptr_t start, uintptr_t end, int is_writable) {
    for (int i = 0; i < LARDER_GUARDED_MAPS; i++) {
        int expected = 0;
        if (!__atomic_compare_exchange_n(
                &larder_guards()->maps[i].is_taken, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        larder_guards()->maps[i].end = end;
        larder_guards()->maps[i].is_writable = is_writable;
        __atomic_store_n(&larder_guards()->maps[i].faults, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&larder_guards()->maps[i].start, start, __ATOMIC_RELEASE);
        return i;
    }
    return -1;
}

static inline void larder_guard_remove(int slot) {
    if (slot < 0 || slot >= LARDER_GUARDED_MAPS) return;
    __atomic_store_n(&larder_guards()->maps[slot].start, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&larder_guards()->maps[slot].is_taken, 0, __ATOMIC_RELEASE);
}

static inline unsigned int larder_guard_faults(int slot) {
    if (slot < 0 || slot >= LARDER_GUARDED_MAPS) return 0;
    return __atomic_load_n(&larder_guards()->maps[slot].faults, __ATOMIC_ACQUIRE);
}
