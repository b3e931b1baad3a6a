// Memory for a C library that takes and gives back the same sizes for each of its tasks.
//
// A thread that opened its store keeps what is given back on it, and takes from there; all other
// threads, and what the store has no room for, go to malloc(3). Blocks may be taken on one thread and
// given back on another.
//
// Measured with libcurl 7.88, which takes 45 blocks for each transfer, among them 120 KiB to read
// into. Given back to glibc's heap, that one is merged with its neighbours each time, and what lives
// long takes its place: 14 % of a stored response's time went to malloc(3) on the thread that fetches
// it, and 5 % go there with this.
#ifndef LARDER_CBLOCKS_H
#define LARDER_CBLOCKS_H

#include <stddef.h>

// What a thread keeps at most, in bytes.
#define LARDER_BLOCKS_LIMIT (8ul << 20)

// The calling thread keeps blocks from now on; 0 where it does not, for want of memory or because
// the environment or the build asks for an allocator that finds faults.
int larder_blocks_open(void);

// It keeps none any more; to be called before it ends.
void larder_blocks_close(void);

// The bytes that the calling thread keeps.
size_t larder_blocks_kept(void);

// malloc(3), calloc(3), realloc(3), strdup(3) and free(3), for these blocks alone. To give back what is
// none, or is not out, ends the process, as it does in glibc.
void *larder_blocks_take(size_t size);
void *larder_blocks_take_zeroed(size_t count, size_t size);
void *larder_blocks_resize(void *bytes, size_t size);
char *larder_blocks_copy(const char *text);
void larder_blocks_give(void *bytes);

#endif
