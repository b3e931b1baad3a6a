// crypt(3) of the system: bcrypt, yescrypt and whatever else it has (libcrypt-dev).
#ifndef LARDER_CCRYPT_SHIM_H
#define LARDER_CCRYPT_SHIM_H

#include <crypt.h>

#endif
