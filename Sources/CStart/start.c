#include "CStart.h"

#include <features.h>
#include <stddef.h>

static int count;
static char **arguments;

// glibc calls the functions of .init_array with what main() gets; other C libraries call them with
// nothing.
#ifdef __GLIBC__
__attribute__((constructor)) static void note(int argc, char **argv, char **environment) {
    (void)environment;
    count = argc;
    arguments = argv;
}
#endif

int larder_argument_count(void) { return arguments == NULL || count < 0 ? 0 : count; }

const char *larder_argument(int index) {
    return index >= 0 && index < larder_argument_count() ? arguments[index] : NULL;
}
