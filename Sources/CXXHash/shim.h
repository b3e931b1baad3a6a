// xxHash as a header: with XXH_INLINE_ALL nothing is linked, but each function gets a macro for a
// name, and macros that stand for functions are not imported. So each one used has a name here.
#ifndef LARDER_CXXHASH_SHIM_H
#define LARDER_CXXHASH_SHIM_H

#include <stddef.h>
#include <stdint.h>

// On x86-64 the header comes with its functions for AVX2 beside those for SSE2, as xxHash's own
// dispatcher has it: 64 KiB take 1.7 us by them, and 6.3 us without. Which the machine has is asked as
// the program runs. They have the same result.
#if defined(__x86_64__) && !defined(__AVX2__)
#define LARDER_XXH_CHOOSES 1
#include <immintrin.h>
#define XXH_X86DISPATCH
#define XXH_DISPATCH_AVX2 1
#define XXH_TARGET_AVX2 __attribute__((__target__("avx2")))
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

// The functions inside have changed their names and may do so again.
#if defined(LARDER_XXH_CHOOSES) && XXH_VERSION_NUMBER >= 801 && XXH_VERSION_NUMBER <= 803
#define LARDER_XXH_AVX2 1
#if XXH_VERSION_NUMBER == 801
#define LARDER_XXH_ACCUMULATE XXH3_accumulate_512_avx2
#else
#define LARDER_XXH_ACCUMULATE XXH3_accumulate_avx2
#endif

static __attribute__((noinline, __target__("avx2"))) uint64_t larder_xxh3_long_avx2(
    const void *bytes, size_t length, uint64_t seed) {
    return XXH3_hashLong_64b_withSeed_internal(
        bytes, length, seed, LARDER_XXH_ACCUMULATE, XXH3_scrambleAcc_avx2,
        XXH3_initCustomSecret_avx2);
}
#endif

// By the instructions that every processor of the kind has.
static inline uint64_t larder_xxh3_64_plain(const void *bytes, size_t length, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, length, seed);
}

static inline uint64_t larder_xxh3_64(const void *bytes, size_t length, uint64_t seed) {
#ifdef LARDER_XXH_AVX2
    if (length > XXH3_MIDSIZE_MAX && __builtin_cpu_supports("avx2")) {
        return larder_xxh3_long_avx2(bytes, length, seed);
    }
#endif
    return larder_xxh3_64_plain(bytes, length, seed);
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
