/* A client and an origin in a process of their own, driven over a socket. */
#define _GNU_SOURCE
#include "request_load.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { BYTES = 16384 };

struct command {
    uint16_t proxy;
    enum request_load_kind kind;
    uint64_t first, count;
};

/* Reads up to the end of a head; its length, or -1. What came beyond is in `bytes`, too. */
static ssize_t read_head(int fd, char *bytes, size_t *had)
{
    while (*had < BYTES - 1) {
        ssize_t n = recv(fd, bytes + *had, BYTES - 1 - *had, 0);
        if (n <= 0) return -1;
        *had += (size_t)n;
        bytes[*had] = 0;
        char *end = strstr(bytes, "\r\n\r\n");
        if (end != NULL) return end + 4 - bytes;
    }
    return -1;
}

static void *serve(void *argument)
{
    static const char body[4096];
    int fd = (int)(intptr_t)argument;
    char bytes[BYTES], answer[512 + sizeof body];
    size_t had = 0;
    while (read_head(fd, bytes, &had) > 0) {
        int stores = strstr(bytes, "/store/") != NULL, misses = strstr(bytes, "/miss/") != NULL;
        size_t size = stores ? 4096 : 1024;
        int head = snprintf(answer, 512,
                            "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: "
                            "application/octet-stream\r\nContent-Length: %zu\r\nETag: \"bench\"\r\n"
                            "Cache-Control: %s\r\n\r\n",
                            size, misses ? "no-store" : "public, max-age=86400");
        memcpy(answer + head, body, size);
        size_t total = (size_t)head + size;
        if (send(fd, answer, total, MSG_NOSIGNAL) != (ssize_t)total) break;
        had = 0; /* A proxy sends its next request after this answer. */
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *argument)
{
    int listener = (int)(intptr_t)argument, one = 1;
    for (;;) {
        pthread_t thread;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) continue;
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
            pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
            close(fd);
        else
            pthread_detach(thread);
    }
    return NULL;
}

static int connect_to(uint16_t port)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 30};
    if (fd < 0) return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* `how` is what Cache-Status must say; NULL: whatever it says. */
static int exchange(
    int fd, const char *request, size_t length, int status, size_t size, const char *how)
{
    char bytes[BYTES];
    size_t had = 0;
    if (send(fd, request, length, MSG_NOSIGNAL) != (ssize_t)length) return -1;
    ssize_t head = read_head(fd, bytes, &had);
    if (head < 0 || atoi(bytes + strlen("HTTP/1.1 ")) != status) return -1;
    if (how != NULL && strstr(bytes, how) == NULL) return -1;
    while (had - (size_t)head < size) {
        ssize_t n = recv(fd, bytes + had, BYTES - had, 0);
        if (n <= 0) return -1;
        had += (size_t)n;
    }
    return had - (size_t)head == size ? 0 : -1;
}

static int run(const struct command *c, uint16_t origin)
{
    static const char *const paths[] = {"hit/1", "hit/1", "miss/1", "store", "hit/1"};
    char request[512], number[32] = "", field[64] = "";
    int result = 0, fd = connect_to(c->proxy);
    if (fd < 0) return -1;
    for (uint64_t i = 0; i < c->count && result == 0; i++) {
        if (c->kind == REQUEST_LOAD_STORE)
            snprintf(number, sizeof number, "/%llu", (unsigned long long)(c->first + i));
        if (c->kind == REQUEST_LOAD_NOT_MODIFIED)
            snprintf(field, sizeof field, "If-None-Match: \"bench\"\r\n");
        if (c->kind == REQUEST_LOAD_VARIED)
            snprintf(field, sizeof field, "X-Request-Id: %llu\r\n",
                     (unsigned long long)(c->first + i));
        int length = snprintf(
            request, sizeof request, "GET http://127.0.0.1:%u/%s%s HTTP/1.1\r\nHost: 127.0.0.1:%u"
            "\r\nUser-Agent: bench\r\nAccept: */*\r\n%s\r\n", origin, paths[c->kind], number, origin,
            field);
        int unchanged = c->kind == REQUEST_LOAD_NOT_MODIFIED;
        size_t size = unchanged ? 0 : c->kind == REQUEST_LOAD_STORE ? 4096 : 1024;
        int hits = unchanged || c->kind == REQUEST_LOAD_HIT || c->kind == REQUEST_LOAD_VARIED;
        /* The first one may be what brings the response into the cache. */
        const char *how = !hits ? "; fwd=" : i > 0 ? "; hit" : NULL;
        result = exchange(fd, request, (size_t)length, unchanged ? 304 : 200, size, how);
    }
    close(fd);
    return result;
}

static void be_load(int control)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct command command;
    pthread_t thread;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* It ends with its parent, however that ends. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) _exit(1);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0) _exit(1);
    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0) _exit(1);
    if (listen(listener, 64) != 0) _exit(1);
    if (pthread_create(&thread, NULL, accept_all, (void *)(intptr_t)listener) != 0) _exit(1);
    while (recv(control, &command, sizeof command, 0) == sizeof command) {
        char result = run(&command, ntohs(address.sin_port)) == 0 ? 'y' : 'n';
        if (send(control, &result, 1, MSG_NOSIGNAL) != 1) break;
    }
    _exit(0);
}

int request_load_start(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return -1;
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) {
        close(pair[0]);
        be_load(pair[1]);
    }
    close(pair[1]);
    return pair[0];
}

int request_load_run(
    int load, uint16_t proxy, enum request_load_kind kind, uint64_t first, uint64_t count)
{
    struct command command = {.proxy = proxy, .kind = kind, .first = first, .count = count};
    char result = 'n';
    if (send(load, &command, sizeof command, MSG_NOSIGNAL) != sizeof command) return -1;
    return recv(load, &result, 1, 0) == 1 && result == 'y' ? 0 : -1;
}

int instruction_counter_open(void)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_HARDWARE, .size = sizeof attributes,
        .config = PERF_COUNT_HW_INSTRUCTIONS, .inherit = 1, .exclude_kernel = 1, .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int64_t instruction_counter_read(int counter)
{
    uint64_t value = 0;
    if (read(counter, &value, sizeof value) != sizeof value) return -1;
    return value > INT64_MAX ? -1 : (int64_t)value;
}
