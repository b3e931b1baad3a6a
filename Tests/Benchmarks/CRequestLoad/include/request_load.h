#pragma once

#include <stdint.h>

/// What is asked for, and what must come.
enum request_load_kind {
    /// 1 KiB that may be stored, the same again and again.
    REQUEST_LOAD_HIT = 0,
    /// The same with its entity tag: 304.
    REQUEST_LOAD_NOT_MODIFIED = 1,
    /// 1 KiB that may not be stored.
    REQUEST_LOAD_MISS = 2,
    /// 4 KiB that may be stored, another one each time.
    REQUEST_LOAD_STORE = 3,
    /// As REQUEST_LOAD_HIT, with a field that differs from one request to the next.
    REQUEST_LOAD_VARIED = 4,
};

/// Starts a process that is client and origin at once, so that nothing of either is counted here.
///
/// To be called before this process has a second thread.
/// Returns the descriptor that `request_load_run` wants, or -1 with `errno`.
int request_load_start(void);

/// Has it send `count` requests to the proxy, over one connection, each after the last answer; those
/// of REQUEST_LOAD_STORE and REQUEST_LOAD_VARIED are numbered from `first`.
///
/// Returns 0, or -1 when an answer was not what it must be.
int request_load_run(
    int load, uint16_t proxy, enum request_load_kind kind, uint64_t first, uint64_t count);

/// Counts the instructions of all threads that this process will have, outside of the kernel, by the
/// processor's own counter.
///
/// Returns a descriptor, or -1 where there is no such counter or no right to use it.
int instruction_counter_open(void);

/// Returns what was counted so far, or -1.
int64_t instruction_counter_read(int counter);
