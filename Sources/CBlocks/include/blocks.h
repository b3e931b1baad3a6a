// Memory for a C library that takes and gives back the same sizes for each of its tasks.
//
// Whoever works through a store keeps there what is given back, and takes it from there again; every
// other thread has malloc(3) alone. A block is malloc's, with nothing of ours in it: it may be taken
// here and given back elsewhere, and free(3) takes it, too.
#ifndef LARDER_CBLOCKS_H
#define LARDER_CBLOCKS_H

#include <stddef.h>

// What a store keeps at most, in bytes of room.
#define LARDER_BLOCKS_LIMIT (4ul << 20)

// Blocks that wait to be used again: of one thread at a time.
struct larder_blocks;

// A store without blocks; NULL for want of memory, and where the build or the environment asks for an
// allocator that finds faults.
struct larder_blocks *larder_blocks_open(void);

// Gives all that is kept back to malloc. No thread may work through the store any more.
void larder_blocks_close(struct larder_blocks *store);

// The calling thread works through the store from now on, or, with NULL, through none; returns the one
// that it had before.
struct larder_blocks *larder_blocks_enter(struct larder_blocks *store);

// The bytes of room that a store keeps.
size_t larder_blocks_kept(const struct larder_blocks *store);

// malloc(3), calloc(3), realloc(3), strdup(3) and free(3), for curl_global_init_mem(3).
void *larder_blocks_take(size_t size);
void *larder_blocks_take_zeroed(size_t count, size_t size);
void *larder_blocks_resize(void *bytes, size_t size);
char *larder_blocks_copy(const char *text);
void larder_blocks_give(void *bytes);

#endif
