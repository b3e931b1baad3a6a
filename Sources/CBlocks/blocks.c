#include "blocks.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FINDS_FAULTS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FINDS_FAULTS 1
#endif
#endif

// Rooms: 16 to 128 bytes by steps of 16, then four to each doubling up to 256 KiB. So a block is at
// most a quarter larger than what is asked for. They are jemalloc's sizes, and 8 bytes less than glibc's:
// what malloc gives for a room comes back as one of the same kind.
enum { fine_step = 16, fine_kinds = 8, fine_limit = fine_step * fine_kinds, doublings = 11 };
enum { kinds = fine_kinds + doublings * 4, no_kind = kinds };
static const size_t coarse_limit = (size_t)fine_limit << doublings;

// Of each kind at most so many are kept.
enum { depth = 64 };

struct larder_blocks {
    size_t room;
    unsigned char count[kinds];
    void *kept[kinds][depth];
};

static _Thread_local struct larder_blocks *own;

// The room of each kind.
#define DOUBLING(from) (from) / 4 * 5, (from) / 4 * 6, (from) / 4 * 7, (from) * 2
static const unsigned rooms[kinds] = {
    16, 32, 48, 64, 80, 96, 112, 128,
    DOUBLING(128), DOUBLING(256), DOUBLING(512), DOUBLING(1024), DOUBLING(2048), DOUBLING(4096),
    DOUBLING(8192), DOUBLING(16384), DOUBLING(32768), DOUBLING(65536), DOUBLING(131072),
};

// How many kinds have their room within so many steps: nearly all blocks are that small.
enum { small_steps = 64 };
static const unsigned char kinds_within[small_steps + 1] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11,
    12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15,
    16, 16, 16, 16, 16, 16, 16, 16, 17, 17, 17, 17, 17, 17, 17, 17,
    18, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19,
    20,
};

// The smallest kind with room for so many bytes.
static unsigned kind_for(size_t size) {
    if (size <= small_steps * fine_step)
        return size == 0 ? 0 : kinds_within[(size - 1) / fine_step];
    if (size > coarse_limit) return no_kind;
    // The doubling in which it lies, and the quarter of that.
    unsigned doubling = 63 - (unsigned)__builtin_clzll((size - 1) / fine_limit);
    size_t beyond = size - 1 - ((size_t)fine_limit << doubling);
    return fine_kinds + doubling * 4 + (unsigned)(beyond / (fine_limit / 4) >> doubling);
}

// The largest kind whose room lies within so many bytes, of which malloc gives some more than were
// asked for; what is too large, or too small, for any kind is not kept.
static unsigned kind_within(size_t usable) {
    if (usable < (small_steps + 1) * fine_step) {
        unsigned count = kinds_within[usable / fine_step];
        return count == 0 ? no_kind : count - 1;
    }
    if (usable >= coarse_limit + coarse_limit / 4) return no_kind;
    // That of one byte more, less one: a room that fits exactly is among them.
    return usable >= coarse_limit ? kinds - 1 : kind_for(usable + 1) - 1;
}

struct larder_blocks *larder_blocks_open(void) {
#ifdef FINDS_FAULTS
    return NULL;
#endif
    // mallopt(3): who sets it looks for uses of what was given back.
    if (getenv("MALLOC_PERTURB_")) return NULL;
    return calloc(1, sizeof(struct larder_blocks));
}

void larder_blocks_close(struct larder_blocks *store) {
    if (!store) return;
    for (unsigned kind = 0; kind < kinds; kind++)
        for (unsigned index = 0; index < store->count[kind]; index++) free(store->kept[kind][index]);
    free(store);
}

struct larder_blocks *larder_blocks_enter(struct larder_blocks *store) {
    struct larder_blocks *before = own;
    own = store;
    return before;
}

size_t larder_blocks_kept(const struct larder_blocks *store) { return store ? store->room : 0; }

void *larder_blocks_take(size_t size) {
    struct larder_blocks *store = own;
    unsigned kind = store ? kind_for(size) : no_kind;
    if (kind == no_kind) return malloc(size);
    size_t room = rooms[kind];
    if (store->count[kind] == 0) return malloc(room);
    store->room -= room;
    return store->kept[kind][--store->count[kind]];
}

void larder_blocks_give(void *bytes) {
    if (!bytes) return;
    struct larder_blocks *store = own;
    if (!store) return free(bytes);
    unsigned kind = kind_within(malloc_usable_size(bytes));
    if (kind == no_kind || store->count[kind] == depth) return free(bytes);
    size_t room = rooms[kind];
    if (room > LARDER_BLOCKS_LIMIT - store->room) return free(bytes);
    store->room += room;
    store->kept[kind][store->count[kind]++] = bytes;
}

void *larder_blocks_take_zeroed(size_t count, size_t size) {
    size_t all;
    if (!own || __builtin_mul_overflow(count, size, &all)) return calloc(count, size);
    void *bytes = larder_blocks_take(all);
    return bytes ? memset(bytes, 0, all) : NULL;
}

void *larder_blocks_resize(void *bytes, size_t size) {
    if (!bytes) return larder_blocks_take(size);
    if (!own || size == 0 || kind_for(size) == no_kind) return realloc(bytes, size);
    size_t usable = malloc_usable_size(bytes);
    if (size <= usable && size >= usable / 4) return bytes;
    void *moved = larder_blocks_take(size);
    if (!moved) return NULL;
    memcpy(moved, bytes, usable < size ? usable : size);
    larder_blocks_give(bytes);
    return moved;
}

char *larder_blocks_copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = larder_blocks_take(size);
    return copy ? memcpy(copy, text, size) : NULL;
}
