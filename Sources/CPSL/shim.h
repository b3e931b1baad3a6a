// libpsl, the list of public suffixes that the distribution maintains (libpsl-dev).
#ifndef LARDER_CPSL_SHIM_H
#define LARDER_CPSL_SHIM_H

#include <libpsl.h>

#endif
