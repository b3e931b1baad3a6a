/*
 * The C library's allocator with counters before it.
 *
 * An executable's own definitions are the ones that all libraries find ("Replacing malloc" in the
 * C library's manual); what they call in turn are the library's own names for the same functions.
 */
#include "allocation_counts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static _Atomic uint64_t calls, bytes;

static void count(size_t size)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
}

uint64_t allocation_count(void) { return atomic_load_explicit(&calls, memory_order_relaxed); }
uint64_t allocated_bytes(void) { return atomic_load_explicit(&bytes, memory_order_relaxed); }

void *malloc(size_t size)
{
    count(size);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count(number * size);
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    count(size);
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    count(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
    void *found = memalign(alignment, size);
    if (found == NULL) return ENOMEM;
    *result = found;
    return 0;
}

void free(void *old) { __libc_free(old); }
