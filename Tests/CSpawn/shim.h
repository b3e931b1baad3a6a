// What glibc declares to those alone who ask for GNU's extensions, as Swift does not.
#ifndef LARDER_CSPAWN_SHIM_H
#define LARDER_CSPAWN_SHIM_H

#include <spawn.h>

// posix_spawn_file_actions_addclosefrom_np, since glibc 2.34: the program begins without the
// descriptors from this one on, however many there are.
extern int posix_spawn_file_actions_addclosefrom_np(
    posix_spawn_file_actions_t *actions, int first);

#endif
