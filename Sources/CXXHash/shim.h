// xxHash as a header: with XXH_INLINE_ALL nothing is linked, but each function gets a macro for a
// name, and macros that stand for functions are not imported. So each one used has a name here.
#ifndef LARDER_CXXHASH_SHIM_H
#define LARDER_CXXHASH_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t larder_xxh3_64(const void *bytes, size_t length, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, length, seed);
}

typedef struct {
    uint64_t high;
    uint64_t low;
} larder_hash128;

static inline larder_hash128 larder_xxh3_128(const void *bytes, size_t length, uint64_t seed) {
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, length, seed);
    larder_hash128 result = {hash.high64, hash.low64};
    return result;
}

#endif
