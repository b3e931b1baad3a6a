// Calls of the kernel that Swift cannot make: they are variadic in C.
#ifndef LARDER_CLINUX_SHIM_H
#define LARDER_CLINUX_SHIM_H

#include <sys/prctl.h>

// prctl(2): PR_SET_DUMPABLE, 0 or 1.
static inline int larder_set_dumpable(unsigned long dumpable) {
    return prctl(PR_SET_DUMPABLE, dumpable, 0UL, 0UL, 0UL);
}

// prctl(2): PR_GET_DUMPABLE.
static inline int larder_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0UL, 0UL, 0UL, 0UL); }

#endif
