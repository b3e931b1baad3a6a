// MAP_ANONYMOUS of <sys/mman.h>.
#define _GNU_SOURCE

#include "shim.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

// A page of a map that cannot be read (EIO), or that lies behind the end of a file which was cut
// short, is SIGBUS to whoever touches it. The handler puts zeros there and counts. It calls nothing
// but mmap, sigaction and raise, and reads the table without a lock: a slot's start is written last
// and cleared first.
enum { LARDER_GUARDED_MAPS = 4096 };

static uintptr_t system_page;
static struct sigaction previous;
static struct {
    int is_taken;
    int is_writable;
    uintptr_t start;
    uintptr_t end;
    unsigned int faults;
} maps[LARDER_GUARDED_MAPS];

static void pass_on(int number, siginfo_t *info, void *context) {
    int is_fault = info->si_code > 0;
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler == SIG_IGN && !is_fault) {
        return;
    } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
        // The instruction is tried again, and ends the process as if nobody had looked. A signal
        // that was sent has no such instruction.
        struct sigaction usual = {.sa_handler = SIG_DFL};
        sigaction(number, &usual, NULL);
        if (!is_fault) raise(number);
    } else {
        previous.sa_handler(number);
    }
}

// Puts zeros at the address if it lies in a guarded map.
static int put_zeros(uintptr_t address) {
    for (int i = 0; i < LARDER_GUARDED_MAPS; i++) {
        uintptr_t start = __atomic_load_n(&maps[i].start, __ATOMIC_ACQUIRE);
        if (start == 0 || address < start || address >= maps[i].end) continue;
        int access = PROT_READ | (maps[i].is_writable ? PROT_WRITE : 0);
        void *page = (void *)(address & ~(system_page - 1));
        void *zeros = mmap(page, system_page, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (zeros == MAP_FAILED) return 0;
        __atomic_add_fetch(&maps[i].faults, 1, __ATOMIC_RELEASE);
        return 1;
    }
    return 0;
}

static void bus_error(int number, siginfo_t *info, void *context) {
    int saved = errno;
    // sigaction(2): si_addr is a fault's; in its place a signal that was sent has who sent it.
    int is_ours = info->si_code > 0 && put_zeros((uintptr_t)info->si_addr);
    errno = saved;
    if (!is_ours) pass_on(number, info, context);
}

// SA_NODEFER: a second fault while the first is passed on is not to end it without a word of its
// handler's.
int larder_guard_install(void) {
    system_page = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    action.sa_sigaction = bus_error;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &previous);
}

int larder_guard_add(uintptr_t start, uintptr_t end, int is_writable) {
    for (int i = 0; i < LARDER_GUARDED_MAPS; i++) {
        int expected = 0;
        if (!__atomic_compare_exchange_n(
                &maps[i].is_taken, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        maps[i].end = end;
        maps[i].is_writable = is_writable;
        __atomic_store_n(&maps[i].faults, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&maps[i].start, start, __ATOMIC_RELEASE);
        return i;
    }
    return -1;
}

void larder_guard_remove(int slot) {
    if (slot < 0 || slot >= LARDER_GUARDED_MAPS) return;
    __atomic_store_n(&maps[slot].start, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&maps[slot].is_taken, 0, __ATOMIC_RELEASE);
}

unsigned int larder_guard_faults(int slot) {
    if (slot < 0 || slot >= LARDER_GUARDED_MAPS) return 0;
    return __atomic_load_n(&maps[slot].faults, __ATOMIC_ACQUIRE);
}
