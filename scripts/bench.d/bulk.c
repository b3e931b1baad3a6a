/*
 * Moves bytes in bulk through a tunnel on loopback.
 *
 *     bulk source PORT
 *     bulk load PORT SOURCE-PORT CONNECTIONS MEBIBYTES connect|direct
 *
 * The source answers a number (eight bytes, the host's order) with so many bytes. The load asks it
 * through the proxy on PORT for MEBIBYTES over each of CONNECTIONS, by CONNECT or, where the proxy
 * passes on whatever comes, without, and prints the word LOAD and what it took as JSON. The bytes
 * are neither made nor looked at: both ends shall cost little.
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>

enum { MAX_EVENTS = 64, MAX_DESCRIPTORS = 4096, MAX_CONNECTIONS = 256, BLOCK = 1 << 20 };

static uint64_t owed[MAX_DESCRIPTORS];

/* Sends what is owed until the socket is full; 0: the connection is finished with. */
static int pour(int fd, int block)
{
    if (owed[fd] == 0) {
        ssize_t n = recv(fd, &owed[fd], sizeof owed[fd], MSG_DONTWAIT);
        if (n < 0) return errno == EAGAIN;
        if (n != sizeof owed[fd]) return 0;
    }
    while (owed[fd] > 0) {
        off_t from = 0;
        ssize_t n = sendfile(fd, block, &from, owed[fd] < BLOCK ? owed[fd] : BLOCK);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        owed[fd] -= (uint64_t)n;
    }
    return 1;
}

static void be_source(int port)
{
    int poller = new_poller(), listener = listen_on(port, poller);
    /* sendfile(2) and splice(2) have no flag that keeps this signal away. */
    signal(SIGPIPE, SIG_IGN);
    int block = memfd_create("block", MFD_CLOEXEC);
    if (block < 0) die("memfd_create");
    char *bytes = calloc(1, BLOCK);
    if (bytes == NULL || write(block, bytes, BLOCK) != BLOCK) die("write");
    for (;;) {
        struct epoll_event events[MAX_EVENTS];
        int n = await(poller, events, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                if (!pour(fd, block)) close(fd);
                continue;
            }
            int client = accepted(listener);
            if (client >= MAX_DESCRIPTORS) close(client);
            else if (client >= 0) {
                owed[client] = 0;
                watch(poller, client, EPOLLIN | EPOLLOUT | EPOLLET);
            }
        }
    }
}

/* A connection to the source through the proxy. */
static int tunnel(int port, int source, int by_connect)
{
    char text[512];
    int fd = connected_to(port);
    if (!by_connect) return fd;
    int length = snprintf(text, sizeof text,
                          "CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", source,
                          source);
    if (send(fd, text, (size_t)length, MSG_NOSIGNAL) != length) die("send");
    size_t had = 0;
    while (had < sizeof text - 1) {
        ssize_t n = recv(fd, text + had, 1, 0); /* No byte beyond the head. */
        if (n <= 0) die("the answer to CONNECT");
        text[++had] = 0;
        if (had >= 4 && memcmp(text + had - 4, "\r\n\r\n", 4) == 0) break;
    }
    if (strncmp(text, "HTTP/1.", 7) != 0 || strncmp(text + 8, " 200", 4) != 0) {
        fprintf(stderr, "bulk: refused: %.60s\n", text);
        exit(1);
    }
    return fd;
}

static uint64_t microseconds(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) die("clock_gettime");
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

static void load(int port, int source, int count, uint64_t mebibytes, int by_connect)
{
    static char bytes[BLOCK];
    static uint64_t left[MAX_DESCRIPTORS];
    int poller = new_poller(), open = 0;
    uint64_t each = mebibytes << 20, total = 0, begin = microseconds();
    for (; open < count; open++) {
        int fd = tunnel(port, source, by_connect);
        if (fd >= MAX_DESCRIPTORS) die("descriptors");
        left[fd] = each;
        watch(poller, fd, EPOLLIN);
        if (send(fd, &each, sizeof each, MSG_NOSIGNAL) != sizeof each) die("send");
    }
    while (open > 0) {
        struct epoll_event events[MAX_EVENTS];
        int n = await(poller, events, MAX_EVENTS, 20000);
        if (n == 0) die("nothing comes");
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            /* TCP throws away what is read so (tcp(7)): this end copies nothing. */
            ssize_t got = recv(fd, bytes, sizeof bytes, MSG_TRUNC | MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0 || (uint64_t)got > left[fd]) die("a tunnel ended early");
            total += (uint64_t)got;
            left[fd] -= (uint64_t)got;
            if (left[fd] == 0 && open-- > 0) close(fd);
        }
    }
    printf("LOAD {\"bytes\": %llu, \"microseconds\": %llu}\n", (unsigned long long)total,
           (unsigned long long)(microseconds() - begin));
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "source") == 0) be_source(atoi(arguments[2]));
    int connections = count == 7 ? atoi(arguments[4]) : 0;
    long mebibytes = count == 7 ? atol(arguments[5]) : 0;
    if (count != 7 || strcmp(arguments[1], "load") != 0 || connections < 1 ||
        connections > MAX_CONNECTIONS || mebibytes < 1 || mebibytes > 1 << 20) {
        fprintf(stderr, "usage: bulk source PORT\n"
                        "       bulk load PORT SOURCE-PORT CONNECTIONS MEBIBYTES connect|direct\n");
        return 2;
    }
    load(atoi(arguments[2]), atoi(arguments[3]), connections, (uint64_t)mebibytes,
         strcmp(arguments[6], "connect") == 0);
    return 0;
}
