#include "blocks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define FINDS_FAULTS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FINDS_FAULTS 1
#endif
#endif

// Rooms: 32 to 1,024 bytes by steps of 32, then four to each doubling up to 256 KiB. So a block is
// at most a quarter larger than what is asked for.
enum { fine_step = 32, fine_kinds = 32, kinds = fine_kinds + 8 * 4, no_kind = kinds };
static const size_t fine_limit = fine_step * fine_kinds;

enum { is_out = 0x4f55542e, is_kept = 0x4b455054 };

// Stands before each block, and keeps malloc's alignment.
struct block {
    union {
        struct block *next;
        size_t room;
    };
    uint32_t kind;
    uint32_t state;
};
_Static_assert(sizeof(struct block) == 16, "blocks begin where malloc's would");

struct store {
    struct block *kept[kinds];
    size_t bytes;
};

static _Thread_local struct store *store;

static uint32_t kind_of(size_t size) {
    if (size <= fine_limit) return size == 0 ? 0 : (uint32_t)((size - 1) / fine_step);
    if (size > fine_limit << 8) return no_kind;
    // The doubling in which it lies, and the quarter of that.
    unsigned doubling = 63 - (unsigned)__builtin_clzll((size - 1) / fine_limit);
    size_t quarter = (fine_limit << doubling) / 4;
    return fine_kinds + doubling * 4 + (uint32_t)((size - 1 - (fine_limit << doubling)) / quarter);
}

static size_t room_of(uint32_t kind) {
    if (kind < fine_kinds) return (size_t)(kind + 1) * fine_step;
    unsigned doubling = (kind - fine_kinds) / 4, part = (kind - fine_kinds) % 4;
    return (fine_limit << doubling) / 4 * (5 + part);
}

int larder_blocks_open(void) {
#ifdef FINDS_FAULTS
    return 0;
#endif
    // mallopt(3): who sets it looks for uses of what was given back.
    if (getenv("MALLOC_PERTURB_")) return 0;
    if (!store) store = calloc(1, sizeof *store);
    return store != NULL;
}

void larder_blocks_close(void) {
    struct store *own = store;
    store = NULL;
    if (!own) return;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        struct block *block = own->kept[kind];
        while (block) {
            struct block *next = block->next;
            free(block);
            block = next;
        }
    }
    free(own);
}

size_t larder_blocks_kept(void) { return store ? store->bytes : 0; }

void *larder_blocks_take(size_t size) {
    uint32_t kind = kind_of(size);
    size_t room = kind == no_kind ? size : room_of(kind);
    struct block *block;
    if (store && kind != no_kind && store->kept[kind]) {
        block = store->kept[kind];
        store->kept[kind] = block->next;
        store->bytes -= room;
    } else {
        if (room > SIZE_MAX - sizeof *block) return NULL;
        block = malloc(sizeof *block + room);
        if (!block) return NULL;
    }
    block->room = room;
    block->kind = kind;
    block->state = is_out;
    return block + 1;
}

static struct block *block_of(void *bytes) {
    struct block *block = (struct block *)bytes - 1;
    if (block->state != is_out) abort();
    return block;
}

void larder_blocks_give(void *bytes) {
    if (!bytes) return;
    struct block *block = block_of(bytes);
    block->state = is_kept;
    if (!store || block->kind >= kinds || block->room > LARDER_BLOCKS_LIMIT - store->bytes) {
        free(block);
        return;
    }
    store->bytes += block->room;
    block->next = store->kept[block->kind];
    store->kept[block->kind] = block;
}

void *larder_blocks_take_zeroed(size_t count, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(count, size, &all)) return NULL;
    void *bytes = larder_blocks_take(all);
    return bytes ? memset(bytes, 0, all) : NULL;
}

void *larder_blocks_resize(void *bytes, size_t size) {
    if (!bytes) return larder_blocks_take(size);
    size_t room = block_of(bytes)->room;
    if (size <= room && size >= room / 4) return bytes;
    void *moved = larder_blocks_take(size);
    if (!moved) return NULL;
    memcpy(moved, bytes, room < size ? room : size);
    larder_blocks_give(bytes);
    return moved;
}

char *larder_blocks_copy(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = larder_blocks_take(size);
    return copy ? memcpy(copy, text, size) : NULL;
}
