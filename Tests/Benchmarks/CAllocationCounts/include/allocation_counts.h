#pragma once

#include <stdint.h>

/// How often this process has asked for memory, in all threads, and for how many bytes.
///
/// malloc, calloc, realloc and the aligned kinds count one each; what is given back does not.
uint64_t allocation_count(void);
uint64_t allocated_bytes(void);
