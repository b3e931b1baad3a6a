/* The floor of `scripts/bench url-loading`: small GETs by a libcurl multi handle on one thread, easy
 * handles and connections reused, bodies thrown away. It sends what the library sends by default, so
 * that the origin has the same to read. Says in JSON what it took.
 *
 *     multi-loop URL COUNT AT_ONCE
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long long bytes;

static size_t swallow(char *data, size_t size, size_t count, void *context) {
    (void)data;
    (void)context;
    bytes += (long long)(size * count);
    return size * count;
}

static const char *const fields[] = {
    "Accept-Language: en-001", "Accept-Encoding: gzip, deflate, br, zstd",
    "User-Agent: URLLoadingBench/1.0 URLLoading/1.0",
};

static double now(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) exit(1);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void begin(CURLM *multi, CURL *easy) {
    if (curl_multi_add_handle(multi, easy) != CURLM_OK) {
        fprintf(stderr, "multi-loop: cannot begin a transfer\n");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: multi-loop URL COUNT AT_ONCE\n");
        return 64;
    }
    long count = atol(argv[2]), at_once = atol(argv[3]), begun = 0, done = 0;
    if (count < 1 || at_once < 1 || at_once > 1024) return 64;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return 1;
    CURLM *multi = curl_multi_init();
    if (multi == NULL) return 1;
    struct curl_slist *lines = NULL;
    for (size_t index = 0; index < sizeof fields / sizeof *fields; index++) {
        struct curl_slist *longer = curl_slist_append(lines, fields[index]);
        if (longer == NULL) return 1;
        lines = longer;
    }
    double wall = now(CLOCK_MONOTONIC), processor = now(CLOCK_PROCESS_CPUTIME_ID);
    for (long index = 0; index < at_once && begun < count; index++, begun++) {
        CURL *easy = curl_easy_init();
        if (easy == NULL || curl_easy_setopt(easy, CURLOPT_URL, argv[1]) != CURLE_OK ||
            curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines) != CURLE_OK ||
            curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow) != CURLE_OK)
            return 1;
        begin(multi, easy);
    }
    while (done < count) {
        int running = 0, left = 0;
        if (curl_multi_perform(multi, &running) != CURLM_OK) return 1;
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &left)) != NULL) {
            if (message->msg != CURLMSG_DONE) continue;
            CURL *easy = message->easy_handle;
            long status = 0;
            if (message->data.result != CURLE_OK ||
                curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK ||
                status != 200) {
                fprintf(stderr, "multi-loop: %s, status %ld\n",
                        curl_easy_strerror(message->data.result), status);
                return 1;
            }
            done++;
            if (curl_multi_remove_handle(multi, easy) != CURLM_OK) return 1;
            if (begun < count) {
                begin(multi, easy);
                begun++;
            } else {
                curl_easy_cleanup(easy);
            }
        }
        if (done < count && curl_multi_poll(multi, NULL, 0, 1000, NULL) != CURLM_OK) return 1;
    }
    printf("{\"seconds\": %.6f, \"cpu\": %.6f, \"bytes\": %lld}\n",
           now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - processor, bytes);
    curl_multi_cleanup(multi);
    curl_slist_free_all(lines);
    curl_global_cleanup();
    return 0;
}
