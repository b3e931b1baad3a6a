// xxHash as a header: with XXH_INLINE_ALL nothing is linked, but each function gets a macro for a
// name, and macros that stand for functions are not imported. So each one used has a name here.
#ifndef LARDER_CXXHASH_SHIM_H
#define LARDER_CXXHASH_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

// On x86-64 XXH3's long hash stands here once more, for AVX2. Which the machine has is asked as the
// program runs; the result is the same. It is of our own because Swift's compiler, which compiles what
// stands in headers, unrolls no loop: by xxHash's own functions, whose loops over the halves of a stripe
// then keep the sums in memory, 64 KiB take 6.3 us for SSE2 and 3.7 for AVX2; by this one 1.4, and 1.7
// with one stripe a turn of its loop.
//
// The functions that it uses have changed their names before and may do so again.
#if defined(__x86_64__) && XXH_VERSION_NUMBER >= 801 && XXH_VERSION_NUMBER <= 803
#define LARDER_XXH_AVX2 1
#include <immintrin.h>
#define LARDER_AVX2 __attribute__((__target__("avx2")))

// What half a stripe of 64 bytes adds to half of the sums.
static inline LARDER_AVX2 __m256i larder_xxh3_added(
    __m256i sums, const xxh_u8 *bytes, const xxh_u8 *secret) {
    __m256i data = _mm256_loadu_si256((const __m256i *)bytes);
    __m256i mixed = _mm256_xor_si256(data, _mm256_loadu_si256((const __m256i *)secret));
    __m256i product = _mm256_mul_epu32(mixed, _mm256_srli_epi64(mixed, 32));
    __m256i swapped = _mm256_shuffle_epi32(data, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm256_add_epi64(product, _mm256_add_epi64(sums, swapped));
}

// What the end of a block does to half of the sums.
static inline LARDER_AVX2 __m256i larder_xxh3_scrambled(__m256i sums, const xxh_u8 *secret) {
    __m256i prime = _mm256_set1_epi64x((long long)XXH_PRIME32_1);
    __m256i folded = _mm256_xor_si256(sums, _mm256_srli_epi64(sums, 47));
    __m256i mixed = _mm256_xor_si256(folded, _mm256_loadu_si256((const __m256i *)secret));
    __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(mixed, 32), prime);
    return _mm256_add_epi64(_mm256_mul_epu32(mixed, prime), _mm256_slli_epi64(high, 32));
}

// One of the next stripes.
#define LARDER_XXH_ADD_STRIPE(i) \
    _mm_prefetch((const char *)(next + 512 + 64 * (i)), _MM_HINT_T0); \
    low = larder_xxh3_added(low, next + 64 * (i), key + 8 * (i)); \
    high = larder_xxh3_added(high, next + 64 * (i) + 32, key + 8 * (i) + 32);

// XXH3_64bits_withSeed() for more than XXH3_MIDSIZE_MAX bytes.
static __attribute__((noinline)) LARDER_AVX2 uint64_t larder_xxh3_long_avx2(
    const void *bytes, size_t length, uint64_t seed) {
    XXH_ALIGN(64) xxh_u64 sums[8] = XXH3_INIT_ACC;
    XXH_ALIGN(64) xxh_u8 secret[XXH_SECRET_DEFAULT_SIZE];
    const xxh_u8 *key = secret;
    const xxh_u8 *lastKey = secret + XXH_SECRET_DEFAULT_SIZE - XXH_STRIPE_LEN;
    const xxh_u8 *next = (const xxh_u8 *)bytes;
    const xxh_u8 *last = next + length - XXH_STRIPE_LEN;
    XXH3_initCustomSecret_scalar(secret, seed);
    __m256i low = _mm256_loadu_si256((const __m256i *)sums);
    __m256i high = _mm256_loadu_si256((const __m256i *)(sums + 4));
    // All stripes that end before the last byte, four at a time, of which a block has sixteen; and then
    // the last 64 bytes, some of them again.
    size_t left = (length - 1) / XXH_STRIPE_LEN;
    for (; left >= 4; left -= 4) {
        LARDER_XXH_ADD_STRIPE(0)
        LARDER_XXH_ADD_STRIPE(1)
        LARDER_XXH_ADD_STRIPE(2)
        LARDER_XXH_ADD_STRIPE(3)
        next += 4 * XXH_STRIPE_LEN;
        key += 4 * XXH_SECRET_CONSUME_RATE;
        if (key == lastKey) {
            low = larder_xxh3_scrambled(low, lastKey);
            high = larder_xxh3_scrambled(high, lastKey + 32);
            key = secret;
        }
    }
    for (; left > 0; left--) {
        LARDER_XXH_ADD_STRIPE(0)
        next += XXH_STRIPE_LEN;
        key += XXH_SECRET_CONSUME_RATE;
    }
    low = larder_xxh3_added(low, last, lastKey - XXH_SECRET_LASTACC_START);
    high = larder_xxh3_added(high, last + 32, lastKey - XXH_SECRET_LASTACC_START + 32);
    _mm256_storeu_si256((__m256i *)sums, low);
    _mm256_storeu_si256((__m256i *)(sums + 4), high);
    return XXH3_mergeAccs(
        sums, secret + XXH_SECRET_MERGEACCS_START, (xxh_u64)length * XXH_PRIME64_1);
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
