#include "CJemalloc.h"

// What was freed is kept for a few seconds for what comes next, and then given back, by a thread of
// jemalloc's own: a proxy at rest frees nothing more, which is when it would do so without one.
const char *malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:5000,muzzy_decay_ms:0";
