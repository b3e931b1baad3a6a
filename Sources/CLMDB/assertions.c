#include "shim.h"

#include <setjmp.h>
#include <stddef.h>

// LMDB ends the process where it finds its own state impossible: mdb_env_set_assert is the only way
// to come first, and its callback must not return. So each call that looks at pages leaves a place
// to come back to. Only LMDB's own frames lie between, none of which owns anything but memory; the
// transaction is lost all the same, and must not be touched again: its list of cursors may lead to
// those frames.
static _Thread_local jmp_buf *landing;

static void larder_assertion_failed(MDB_env *env, const char *text) {
    (void)env;
    (void)text;
    if (landing) longjmp(*landing, 1);
}

int larder_catch_assertions(MDB_env *env) {
    return mdb_env_set_assert(env, larder_assertion_failed);
}

// Volatile is what may change between the two returns of setjmp and is read after the second.
#define LARDER_ASSERTED(call)                    \
    jmp_buf here;                                \
    jmp_buf *volatile outer = landing;           \
    volatile int code = LARDER_ASSERTION_FAILED; \
    if (_setjmp(here) == 0) {                    \
        landing = &here;                         \
        code = (call);                           \
    }                                            \
    landing = outer;                             \
    return code;

int larder_get(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value) {
    LARDER_ASSERTED(mdb_get(txn, dbi, key, value))
}

int larder_put(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned int flags) {
    LARDER_ASSERTED(mdb_put(txn, dbi, key, value, flags))
}

int larder_del(MDB_txn *txn, MDB_dbi dbi, MDB_val *key) {
    LARDER_ASSERTED(mdb_del(txn, dbi, key, NULL))
}

int larder_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *value, MDB_cursor_op operation) {
    LARDER_ASSERTED(mdb_cursor_get(cursor, key, value, operation))
}

int larder_cursor_del(MDB_cursor *cursor) {
    LARDER_ASSERTED(mdb_cursor_del(cursor, 0))
}

int larder_commit(MDB_txn *txn) {
    LARDER_ASSERTED(mdb_txn_commit(txn))
}

int larder_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi) {
    LARDER_ASSERTED(mdb_dbi_open(txn, name, flags, dbi))
}
