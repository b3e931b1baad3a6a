/*
 * Loads a proxy at a given rate and tells how long answers took, counted from the moment at which
 * a request was due: one that had to wait because all connections were waiting for answers has
 * waited, too. A load that sends only after the last answer hides just those (wrk is such a one).
 *
 *     paced PORT ORIGIN PREFIX COUNT CONNECTIONS SECONDS RATE [NAME VALUE]...
 *
 * It asks for PREFIX0 ... PREFIX(COUNT-1) of ORIGIN (http://HOST:PORT), over and over, in absolute
 * form, RATE times a second; RATE 0 is as fast as answers come. Each request has the fields NAME:
 * VALUE. It ends with one line, the word LOAD and the figures as JSON, times in microseconds. The
 * first tenth of the time is not counted among the latencies.
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <netinet/tcp.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <time.h>

enum { MAX_EVENTS = 256, MAX_HEAD = 16384, READ_BYTES = 1 << 18, MAX_CONNECTIONS = 1024 };

struct connection {
    int fd;
    uint64_t due;        /* when its request should have been sent; 0: it waits for work */
    size_t head_bytes;   /* of an answer's head that has not ended yet */
    uint64_t body_bytes; /* still to come */
    char head[MAX_HEAD + 1];
};

static struct connection connections[MAX_CONNECTIONS];
static int idle[MAX_CONNECTIONS], idle_first, idle_count, connection_count;
static char **requests;
static size_t *request_bytes, request_count, next_request;
static uint32_t *latencies;
static size_t latency_count, latency_room;
static uint64_t begin, counted_from, finish, answers, bytes_read, bad_statuses, bad_connections;

static uint64_t now(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) die("clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void prepare(const char *origin, const char *prefix, int field_words, char **fields)
{
    char more[4096] = "";
    size_t length = 0;
    for (int i = 0; i + 1 < field_words; i += 2) {
        int n = snprintf(more + length, sizeof more - length, "%s: %s\r\n", fields[i],
                         fields[i + 1]);
        if (n < 0 || (size_t)n >= sizeof more - length) die("fields");
        length += (size_t)n;
    }
    const char *host = strstr(origin, "://");
    host = host == NULL ? origin : host + 3;
    requests = calloc(request_count, sizeof *requests);
    request_bytes = calloc(request_count, sizeof *request_bytes);
    if (requests == NULL || request_bytes == NULL) die("calloc");
    for (size_t i = 0; i < request_count; i++) {
        int n = asprintf(&requests[i], "GET %s%s%zu HTTP/1.1\r\nHost: %s\r\n%s\r\n", origin,
                         prefix, i, host, more);
        if (n < 0) die("asprintf");
        request_bytes[i] = (size_t)n;
    }
}

static void open_connections(int port, int poller)
{
    int one = 1;
    for (int i = 0; i < connection_count; i++) {
        int fd = connected_to(port);
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0) die("setsockopt");
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (unsigned)i};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
        connections[i].fd = fd;
        idle[idle_count++] = i;
    }
}

/* The connection that has waited longest, so that all of them are used. */
static void send_next(uint64_t due)
{
    struct connection *c = &connections[idle[idle_first]];
    idle_first = (idle_first + 1) % connection_count;
    idle_count--;
    c->due = due;
    size_t length = request_bytes[next_request];
    /* A request is far smaller than an empty socket's buffer. */
    if (send(c->fd, requests[next_request], length, MSG_NOSIGNAL) != (ssize_t)length) {
        bad_connections++;
        c->due = 0;
    }
    next_request = (next_request + 1) % request_count;
}

static void answered(struct connection *c, uint64_t time)
{
    answers++;
    if (c->due >= counted_from && latency_count < latency_room) {
        uint64_t microseconds = (time - c->due) / 1000;
        latencies[latency_count++] = microseconds > UINT32_MAX ? UINT32_MAX
                                                               : (uint32_t)microseconds;
    }
    c->due = 0;
    idle[(idle_first + idle_count++) % connection_count] = (int)(c - connections);
}

/* Reads what the head says; -1 where it says nothing that can be used. */
static int read_head(struct connection *c)
{
    c->head[c->head_bytes] = 0;
    int status = strncmp(c->head, "HTTP/1.1 ", 9) == 0 ? atoi(c->head + 9) : 0;
    if (status != 200 && status != 304) bad_statuses++;
    if (status == 0) return -1;
    c->body_bytes = 0;
    if (status == 304) return 0; /* It has no body, whatever length it tells. */
    char *field = strcasestr(c->head, "\r\nContent-Length:");
    if (field == NULL) return -1;
    c->body_bytes = strtoull(field + 17, NULL, 10);
    return 0;
}

/* Takes bytes of one answer; -1: this connection cannot go on. */
static int take(struct connection *c, const char *bytes, size_t count, uint64_t time)
{
    if (c->due == 0) return -1; /* Nothing was asked for. */
    if (c->body_bytes == 0) {
        size_t had = c->head_bytes, room = MAX_HEAD - had;
        memcpy(c->head + had, bytes, count < room ? count : room);
        c->head_bytes += count < room ? count : room;
        size_t from = had < 3 ? 0 : had - 3;
        char *end = memmem(c->head + from, c->head_bytes - from, "\r\n\r\n", 4);
        if (end == NULL) return room > count ? 0 : -1;
        size_t of_head = (size_t)(end + 4 - c->head) - had;
        c->head_bytes = (size_t)(end + 4 - c->head);
        if (read_head(c) != 0) return -1;
        c->head_bytes = 0;
        count -= of_head;
    }
    if (count > c->body_bytes) return -1;
    c->body_bytes -= count;
    if (c->body_bytes == 0) answered(c, time);
    return 0;
}

static void receive(struct connection *c)
{
    static char bytes[READ_BYTES];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) bytes_read += (uint64_t)n;
    if (n <= 0 || take(c, bytes, (size_t)n, now()) != 0) {
        bad_connections++;
        c->due = 0;
        close(c->fd);
    }
}

static void run(int poller, uint64_t rate)
{
    uint64_t sent = 0, due = begin;
    for (uint64_t time = begin; time < finish; time = now()) {
        while (idle_count > 0 && (rate == 0 || due <= time)) {
            send_next(rate == 0 ? time : due);
            sent++;
            if (rate > 0) due = begin + (uint64_t)((double)sent * 1e9 / (double)rate);
        }
        uint64_t until = idle_count > 0 && due < finish ? due : finish;
        uint64_t wait = until > time ? until - time : 0;
        struct timespec patience = {.tv_sec = (time_t)(wait / 1000000000u),
                                    .tv_nsec = (long)(wait % 1000000000u)};
        struct epoll_event events[MAX_EVENTS];
        int n = epoll_pwait2(poller, events, MAX_EVENTS, &patience, NULL);
        if (n < 0 && errno != EINTR) die("epoll_pwait2");
        for (int i = 0; i < n; i++) receive(&connections[events[i].data.u32]);
    }
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t part(double of)
{
    if (latency_count == 0) return 0;
    size_t index = (size_t)((double)latency_count * of);
    return latencies[index < latency_count ? index : latency_count - 1];
}

int main(int count, char **arguments)
{
    if (count < 8) {
        fprintf(stderr, "usage: paced PORT ORIGIN PREFIX COUNT CONNECTIONS SECONDS RATE "
                        "[NAME VALUE]...\n");
        return 2;
    }
    long objects = atol(arguments[4]), clients = atol(arguments[5]), seconds = atol(arguments[6]);
    long rate = atol(arguments[7]);
    if (objects < 1 || objects > 1000000 || clients < 1 || clients > MAX_CONNECTIONS ||
        seconds < 1 || seconds > 3600 || rate < 0 || rate > 10000000) {
        fprintf(stderr, "paced: a number is out of bounds\n");
        return 2;
    }
    request_count = (size_t)objects;
    connection_count = (int)clients;
    latency_room = (size_t)seconds * (rate > 0 ? (size_t)rate + 1 : 1000000);
    latencies = malloc(latency_room * sizeof *latencies);
    if (latencies == NULL) die("malloc");
    prepare(arguments[2], arguments[3], count - 8, arguments + 8);
    /* By default a timer may be 50 microseconds late. */
    if (prctl(PR_SET_TIMERSLACK, 1) != 0) die("prctl");
    int poller = new_poller();
    open_connections(atoi(arguments[1]), poller);
    begin = now();
    finish = begin + (uint64_t)seconds * 1000000000u;
    counted_from = begin + (finish - begin) / 10;
    run(poller, (uint64_t)rate);
    uint64_t took = now() - begin;
    qsort(latencies, latency_count, sizeof *latencies, ascending);
    printf("LOAD {\"requests\": %llu, \"microseconds\": %llu, \"bytes\": %llu, \"p50\": %u, "
           "\"p99\": %u, \"p999\": %u, \"failed_sockets\": %llu, \"failed_statuses\": %llu}\n",
           (unsigned long long)answers, (unsigned long long)took / 1000,
           (unsigned long long)bytes_read, part(0.5), part(0.99), part(0.999),
           (unsigned long long)bad_connections, (unsigned long long)bad_statuses);
    return 0;
}
