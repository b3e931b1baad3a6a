// LMDB, and what must be C around it: a jump out of its assertions, and a handler of SIGBUS.
//
// Both have state that there must be one of in a process, so they are compiled as C and once: a
// static function with static state is emitted, state and all, into each object whose Swift code it
// was inlined into, and an optimised build has a table of maps here and its handler's there.
#include <lmdb.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// Declarations of the C library that only _GNU_SOURCE shows, which cannot be defined for a module
// that was built without it.
ssize_t preadv2(int descriptor, const struct iovec *vectors, int count, off_t offset, int flags);
int fallocate(int descriptor, int mode, off_t offset, off_t length);

// RWF_NOWAIT of <linux/fs.h>: EAGAIN instead of waiting for the disk.
static const int larder_rwf_nowait = 0x00000008;

// FALLOC_FL_KEEP_SIZE of <linux/falloc.h>, which <fcntl.h> includes for _GNU_SOURCE alone.
static const int larder_falloc_keep_size = 0x01;

// LMDB's calls that look at pages, each with a place to come back to from a failed assertion: see
// assertions.c. Only AssertedCalls.swift may use them.
enum { LARDER_ASSERTION_FAILED = -39999 };

int larder_catch_assertions(MDB_env *env);
int larder_get(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value);
int larder_put(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned int flags);
int larder_del(MDB_txn *txn, MDB_dbi dbi, MDB_val *key);
int larder_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op operation);
int larder_cursor_del(MDB_cursor *cursor);
int larder_commit(MDB_txn *txn);
int larder_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi);

// What the disk does not give: see guard.c. Only MapGuard.swift may use it.

// Once a process; an error of sigaction(2)'s otherwise.
int larder_guard_install(void);
// The slot's number; -1 where all are taken.
int larder_guard_add(uintptr_t start, uintptr_t end, int is_writable);
void larder_guard_remove(int slot);
unsigned int larder_guard_faults(int slot);
