// What this process was started with, as the C library handed it over.
//
// Swift's runtime takes the arguments from /proc/self/cmdline, and has none where there is no /proc.
#ifndef LARDER_CSTART_H
#define LARDER_CSTART_H

// How many arguments there are, the program's own name among them; 0 where the C library told of none.
int larder_argument_count(void);

// One of them, which lasts as long as the process; NULL behind the last one.
const char *larder_argument(int index);

#endif
