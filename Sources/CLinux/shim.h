// What Swift cannot say to the kernel: calls that are variadic in C, and structures that are one
// thing under several types.
#ifndef LARDER_CLINUX_SHIM_H
#define LARDER_CLINUX_SHIM_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// prctl(2): PR_SET_DUMPABLE, 0 or 1.
static inline int larder_set_dumpable(unsigned long dumpable) {
    return prctl(PR_SET_DUMPABLE, dumpable, 0UL, 0UL, 0UL);
}

// prctl(2): PR_GET_DUMPABLE.
static inline int larder_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0UL, 0UL, 0UL, 0UL); }

// sched_getaffinity(2) of the calling thread, which glibc declares to those alone who ask for GNU's
// extensions: the bytes of the mask that were filled, or -1.
static inline long larder_get_affinity(void *mask, unsigned long size) {
    return syscall(SYS_sched_getaffinity, 0L, size, mask);
}

// ppoll(2), which glibc declares to those alone who ask for GNU's extensions: waits for a descriptor to
// become readable, or for its end, no longer than so many nanoseconds; 1, 0 or -1.
extern int ppoll(
    struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask);

static inline int larder_await_readable(int descriptor, long nanoseconds) {
    struct pollfd one = {.fd = descriptor, .events = POLLIN};
    struct timespec limit = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    return ppoll(&one, 1, &limit, NULL);
}

// As semaphore.h declares it to those alone who ask for GNU's extensions.
extern int sem_clockwait(
    sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict deadline);

// sem_clockwait(3), by the clock that nobody sets.
static inline int larder_wait_until(sem_t *semaphore, const struct timespec *deadline) {
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, deadline);
}

// sigprocmask(2): the signals that others send. Those that a thread brings upon itself are left out:
// one of them that is blocked when it comes ends the process, whatever handler there is.
static inline int larder_foreign_signals(sigset_t *set) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    int code = sigfillset(set);
    for (unsigned i = 0; i < sizeof own / sizeof own[0]; i++) code |= sigdelset(set, own[i]);
    return code;
}

// What a new thread needs until it has a name.
struct larder_thread_start {
    char name[16];
    void (*body)(void *);
    void *context;
};

static inline void *larder_run_thread(void *argument) {
    struct larder_thread_start start = *(struct larder_thread_start *)argument;
    free(argument);
    // By the thread itself: a detached one may be gone before who started it could name it. Here, as
    // glibc declares pthread_setname_np(3) to those alone who ask for GNU's extensions.
    prctl(PR_SET_NAME, (unsigned long)start.name, 0UL, 0UL, 0UL);
    start.body(start.context);
    return NULL;
}

// Starts a detached thread with the signals of others blocked, and no others, and with the first 15 bytes of `name`,
// which tools show; 0, or the number of an error, and then `context` was not used.
//
// The mask is set around pthread_create(3), as the thread inherits it: no signal finds it without.
static inline int larder_start_thread(
    const char *name, void (*body)(void *), void *context) {
    struct larder_thread_start *start = malloc(sizeof *start);
    if (start == NULL) return ENOMEM;
    memset(start, 0, sizeof *start);
    strncpy(start->name, name, sizeof start->name - 1);
    start->body = body;
    start->context = context;
    sigset_t foreign, before;
    larder_foreign_signals(&foreign);
    // Not added to what is blocked: on a thread of Dispatch's that is SIGABRT, too.
    int code = pthread_sigmask(SIG_SETMASK, &foreign, &before);
    if (code == 0) {
        pthread_t thread;
        code = pthread_create(&thread, NULL, larder_run_thread, start);
        if (code == 0) pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (code != 0) free(start);
    return code;
}

// When a file's content was changed last, in nanoseconds since 1970; -1 where that is too long ago or
// too far away. Here, as Swift takes the members of the time for those of one module or of another,
// depending on what it has read before.
static inline int64_t larder_modified(const struct stat *status) {
    int64_t time;
    if (__builtin_mul_overflow((int64_t)status->st_mtim.tv_sec, 1000000000, &time)
        || __builtin_add_overflow(time, status->st_mtim.tv_nsec, &time))
        return -1;
    return time;
}

// A socket that becomes readable when links, addresses or routes change (rtnetlink(7)); -1 on error.
static inline int larder_open_route_socket(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -1;
    struct sockaddr_nl address;
    memset(&address, 0, sizeof address);
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR
        | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

// Reads and forgets all that lies in a socket that does not block. A message is lost (ENOBUFS) and
// the next is there: so it goes on after that, a bounded number of times.
static inline void larder_drain(int fd) {
    char bytes[8192];
    for (int i = 0; i < 1024; i++) {
        if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return;
    }
}

// Whether a route leads to an address: connect(2) of a datagram socket looks for one and sends nothing.
static inline int larder_routes_to(const struct sockaddr *address, socklen_t size) {
    int fd = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return 0;
    int result = connect(fd, address, size);
    close(fd);
    return result == 0;
}

// Whether any route leads out of this machine: to the addresses for documentation (RFC 5737,
// RFC 3849), which only a default route covers.
static inline int larder_has_route(void) {
    struct sockaddr_in v4;
    memset(&v4, 0, sizeof v4);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(9);
    v4.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1
    if (larder_routes_to((const struct sockaddr *)&v4, sizeof v4)) return 1;
    struct sockaddr_in6 v6;
    memset(&v6, 0, sizeof v6);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(9);
    if (inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr) != 1) return 0;
    return larder_routes_to((const struct sockaddr *)&v6, sizeof v6);
}

// Whether a route, as the kernel tells of it, leads to other machines: not by the loopback interface,
// which has the first number in every namespace; not where there is no link; and to more than the
// addresses that IPv6 has on each interface by itself (RFC 4291 section 2.5.6).
static inline int larder_leads_to_others(struct nlmsghdr *message) {
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg))) return 0;
    struct rtmsg *route = (struct rtmsg *)NLMSG_DATA(message);
    if (route->rtm_family != AF_INET && route->rtm_family != AF_INET6) return 0;
    if (route->rtm_type != RTN_UNICAST || route->rtm_table == RT_TABLE_LOCAL) return 0;
    if ((route->rtm_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)) != 0) return 0;
    int rest = (int)RTM_PAYLOAD(message);
    for (struct rtattr *part = RTM_RTA(route); RTA_OK(part, rest); part = RTA_NEXT(part, rest)) {
        const unsigned char *value = (const unsigned char *)RTA_DATA(part);
        unsigned long size = RTA_PAYLOAD(part);
        int interface;
        if (part->rta_type == RTA_OIF && size >= sizeof interface) {
            memcpy(&interface, value, sizeof interface);
            if (interface == 1) return 0;
        }
        if (part->rta_type == RTA_DST && route->rtm_family == AF_INET6 && size >= 2
            && value[0] == 0xfe && (value[1] & 0xc0) == 0x80)
            return 0;
    }
    return 1;
}

// The same of all routes that a socket was asked for.
static inline int larder_any_leads_to_others(int fd) {
    // What the kernel gives to whoever has not read from a socket before is never longer.
    struct nlmsghdr messages[8192 / sizeof(struct nlmsghdr)];
    for (int i = 0; i < 1024; i++) {
        // It has answered before send(2) returns, and goes on as it is read.
        int rest = (int)recv(fd, messages, sizeof messages, MSG_DONTWAIT);
        if (rest <= 0) return 1;
        for (struct nlmsghdr *message = messages; NLMSG_OK(message, rest);
             message = NLMSG_NEXT(message, rest)) {
            if (message->nlmsg_type == NLMSG_DONE) return 0;
            if (message->nlmsg_type == NLMSG_ERROR) return 1;
            if (message->nlmsg_type == RTM_NEWROUTE && larder_leads_to_others(message)) return 1;
        }
    }
    return 1;
}

// Whether any route leads to another machine, though none may lead out. Where the kernel does not say
// (rtnetlink(7)), it counts as if one did.
static inline int larder_has_neighbours(void) {
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
    } question;
    memset(&question, 0, sizeof question);
    question.head.nlmsg_len = sizeof question;
    question.head.nlmsg_type = RTM_GETROUTE;
    question.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return 1;
    int result = 1;
    if (send(fd, &question, sizeof question, 0) == (ssize_t)sizeof question)
        result = larder_any_leads_to_others(fd);
    close(fd);
    return result;
}

// mmap(2): anonymous memory of the process's own; NULL on error.
static inline void *larder_map_memory(unsigned long size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// madvise(2), whose constants are glibc's own: large pages, where the system has them for the asking.
static inline int larder_want_large_pages(void *memory, unsigned long size) {
    return madvise(memory, size, 14 /* MADV_HUGEPAGE */);
}

// madvise(2): takes the pages out of the process. Who else holds them keeps them as they are; the
// process finds new ones there, all zero.
static inline int larder_give_pages_back(void *memory, unsigned long size) {
    return madvise(memory, size, MADV_DONTNEED);
}

// A pipe that does not block, as large as the kernel lets it be up to `size`; its capacity, or -1.
static inline long larder_open_pipe(int ends[2], int size) {
    if (syscall(SYS_pipe2, ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    int capacity = fcntl(ends[1], 1031 /* F_SETPIPE_SZ */, size);
    if (capacity < 0) capacity = fcntl(ends[1], 1032 /* F_GETPIPE_SZ */);
    if (capacity > 0) return capacity;
    close(ends[0]);
    close(ends[1]);
    return -1;
}

// vmsplice(2): puts references to the pages of these bytes into a pipe; how many bytes, or -1.
static inline long larder_lend_pages(int pipe, const void *bytes, unsigned long count) {
    struct iovec piece = {(void *)bytes, count};
    return syscall(SYS_vmsplice, pipe, &piece, 1UL, 2U /* SPLICE_F_NONBLOCK */);
}

// splice(2) between a pipe and a socket; `more`: further bytes follow at once. How many bytes, or -1.
static inline long larder_splice(int from, int to, unsigned long count, int more) {
    return syscall(
        SYS_splice, from, NULL, to, NULL, count,
        2U /* SPLICE_F_NONBLOCK */ | (more ? 4U /* SPLICE_F_MORE */ : 0U));
}

// send(2) that does not block and raises no signal.
static inline long larder_send(int socket, const void *bytes, unsigned long count, int more) {
    return send(socket, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
}

// The same of several pieces: sendmsg(2).
static inline long larder_send_pieces(int socket, struct iovec *pieces, unsigned long count) {
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

#endif
