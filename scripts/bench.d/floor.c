/*
 * The floor: what a server on one core cannot go below.
 *
 * One epoll loop that answers any request head with the same prepared bytes and keeps the
 * connection alive. It looks for the empty line that ends a head and at nothing else; there is no
 * parser, no cache, no log and no timeout. Anything that does HTTP properly costs more.
 *
 *     floor PORT BODY-BYTES        (0: it answers 304)
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <netinet/tcp.h>
#include <string.h>

enum { MAX_EVENTS = 256, READ_BYTES = 16384, MAX_DESCRIPTORS = 4096, MAX_BODY = 64 << 20 };

struct connection {
    unsigned matched;   /* how many bytes of CR LF CR LF the input ends with */
    unsigned long owed; /* answers that still have to be written */
    size_t offset;      /* bytes already written of the first of them */
};

static struct connection connections[MAX_DESCRIPTORS];
static char *answer;
static size_t answer_bytes;

static void prepare_answer(size_t body_bytes)
{
    char head[256];
    int head_bytes = snprintf(
        head, sizeof head,
        "HTTP/1.1 %s\r\nServer: floor\r\nContent-Type: application/octet-stream\r\n"
        "Cache-Control: max-age=3600\r\nContent-Length: %zu\r\n\r\n",
        body_bytes > 0 ? "200 OK" : "304 Not Modified", body_bytes);
    answer_bytes = (size_t)head_bytes + body_bytes;
    answer = malloc(answer_bytes);
    if (answer == NULL) die("malloc");
    memcpy(answer, head, (size_t)head_bytes);
    memset(answer + head_bytes, 'x', body_bytes);
}

/* Counts the heads that end in these bytes, also where one is split between two reads. */
static void count_heads(struct connection *c, const char *bytes, size_t count)
{
    static const char end[4] = {'\r', '\n', '\r', '\n'};
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == end[c->matched]) {
            if (++c->matched == 4) {
                c->matched = 0;
                c->owed++;
            }
        } else {
            c->matched = bytes[i] == '\r' ? 1 : 0;
        }
    }
}

/* Writes what is owed. 0: the connection is finished with. */
static int write_answers(int fd, struct connection *c)
{
    while (c->owed > 0) {
        ssize_t n = write(fd, answer + c->offset, answer_bytes - c->offset);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        c->offset += (size_t)n;
        if (c->offset == answer_bytes) {
            c->offset = 0;
            c->owed--;
        }
    }
    return 1;
}

static int serve(int fd, unsigned events)
{
    static char bytes[READ_BYTES];
    struct connection *c = &connections[fd];
    if (events & (EPOLLERR | EPOLLHUP)) return 0;
    while (events & EPOLLIN) {
        ssize_t n = read(fd, bytes, sizeof bytes);
        if (n == 0) return 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR) return 0;
        if (n > 0) count_heads(c, bytes, (size_t)n);
        if (n < (ssize_t)sizeof bytes) break; /* A short read emptied the socket. */
    }
    return write_answers(fd, c);
}

static void accept_all(int listener, int poller)
{
    int one = 1;
    for (;;) {
        int fd = accepted(listener);
        if (fd < 0) return;
        if (fd >= MAX_DESCRIPTORS) {
            close(fd);
            continue;
        }
        memset(&connections[fd], 0, sizeof connections[fd]);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        /* Edge-triggered output costs nothing until the socket was full. */
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = fd};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) close(fd);
    }
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: floor PORT BODY-BYTES\n");
        return 2;
    }
    long body_bytes = atol(arguments[2]);
    if (body_bytes < 0 || body_bytes > MAX_BODY) {
        fprintf(stderr, "floor: a body has 0 to %d bytes\n", MAX_BODY);
        return 2;
    }
    prepare_answer((size_t)body_bytes);
    int poller = new_poller(), listener = listen_on(atoi(arguments[1]), poller);
    for (;;) {
        struct epoll_event events[MAX_EVENTS];
        int n = await(poller, events, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) accept_all(listener, poller);
            else if (!serve(fd, events[i].events)) close(fd);
        }
    }
}
