// A module map names its header relative to itself, and the system's lies elsewhere. Of lmdb.h
// itself no macro and no variadic function needs help to be imported.
#include <lmdb.h>
#include <sys/types.h>
#include <sys/uio.h>

// A declaration of the C library that only _GNU_SOURCE shows, which cannot be defined for a module
// that was built without it.
ssize_t preadv2(int descriptor, const struct iovec *vectors, int count, off_t offset, int flags);

// RWF_NOWAIT of <linux/fs.h>: EAGAIN instead of waiting for the disk.
static const int larder_rwf_nowait = 0x00000008;
