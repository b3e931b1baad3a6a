// Only the include: a module map names its header relative to itself, and the system's lies
// elsewhere. No macro and no variadic function of lmdb.h needs help to be imported.
#include <lmdb.h>
