#include "CJemalloc.h"

// What was freed is kept for a few seconds for what comes next, and then given back, by a thread of
// jemalloc's own: a proxy at rest frees nothing more, which is when it would do so without one.
// Threads keep pieces of bodies at hand, too, which are up to 128 KiB: a hit of 1 MiB from the disk
// took 284 µs of CPU time without that and 268 with it.
const char *malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:5000,muzzy_decay_ms:0,"
    "tcache_max:131072";
