// SPDX-License-Identifier: Apache-2.0
// coll_test.c — who meets whom, meetings and messages between threads, programs on several devices.
//
// Everything here must also work with more ranks than CPUs. A hang is a failure: the alarm ends it.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "coll/comm.h"
#include "otrn.h"
#include "tests/unit/run_sized.h"

#define ALARM_SECONDS 120
#define RANKS_MAX 8

static int failures;

static void check(const char *name, bool ok, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void check(const char *name, bool ok, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (ok) {
        printf("ok %s\n", name);
    } else {
        printf("FAIL %s: ", name);
        vprintf(fmt, ap);
        printf("\n");
    }
    va_end(ap);
    failures += !ok;
}

// --- groups ------------------------------------------------------------------------------------

typedef struct GroupCase {
    const char *name;
    GroupMode mode;
    Grid grid;
    uint32_t rows, cols;
    int64_t ids[8];
    uint32_t rank;
    const char *want; // members in order, "" when in no group, or a part of the error
} GroupCase;

static const GroupCase group_cases[] = {
    {"replica groups", GROUP_REPLICA, {4, 1}, 2, 2, {0, 2, 1, 3}, 3, "1 3"},
    {"replica groups in each partition", GROUP_REPLICA, {2, 2}, 1, 2, {1, 0}, 1, "3 1"},
    {"partition groups in each replica", GROUP_PARTITION, {2, 3}, 1, 2, {2, 0}, 3, "5 3"},
    {"partition outside all groups", GROUP_PARTITION, {2, 3}, 1, 2, {2, 0}, 4, ""},
    {"both, partition by partition", GROUP_BOTH, {2, 2}, 1, 2, {0, 1}, 3, "0 2 1 3"},
    {"both, one replica a group", GROUP_BOTH, {2, 3}, 2, 1, {1, 0}, 4, "3 4 5"},
    {"flat ids", GROUP_FLAT, {2, 2}, 2, 2, {3, 0, 1, 2}, 0, "3 0"},
    {"ragged, the full row", GROUP_REPLICA, {3, 1}, 2, 2, {0, 1, 2, -1}, 1, "0 1"},
    {"ragged, the short row", GROUP_REPLICA, {3, 1}, 2, 2, {0, 1, 2, -1}, 2, "2"},
    {"empty: all replicas", GROUP_REPLICA, {3, 2}, 0, 0, {0}, 3, "1 3 5"},
    {"empty: all partitions", GROUP_PARTITION, {2, 3}, 0, 0, {0}, 4, "3 4 5"},
    {"empty: all of both", GROUP_BOTH, {2, 2}, 0, 0, {0}, 1, "0 2 1 3"},
    {"empty: all devices", GROUP_FLAT, {2, 2}, 0, 0, {0}, 1, "0 1 2 3"},
    {"a device too many", GROUP_FLAT, {1, 2}, 1, 3, {0, 1, 2}, 0, "device 2"},
    {"a replica too many", GROUP_REPLICA, {1, 4}, 1, 2, {0, 1}, 2, "names replica 1"},
    {"others' bad groups do not matter", GROUP_REPLICA, {2, 1}, 2, 2, {0, 1, 7, 8}, 0, "0 1"},
    {"twice the same", GROUP_REPLICA, {2, 1}, 1, 3, {0, 1, 1}, 0, "twice"},
    {"hostile id", GROUP_FLAT, {1, 2}, 1, 2, {0, INT64_MIN}, 0, "names device"},
};

static void print_members(const Members *m, char *out, size_t bytes) {
    size_t n = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < m->n; i++)
        n += (size_t)snprintf(out + n, bytes - n, i ? " %u" : "%u", m->rank[i]);
}

static void test_groups(void) {
    for (size_t i = 0; i < sizeof group_cases / sizeof *group_cases; i++) {
        const GroupCase *c = &group_cases[i];
        Groups g = {c->mode, c->ids, c->rows, c->cols};
        Members m;
        char why[200] = "", got[200];
        bool ok = groups_members(&g, c->grid, c->rank, &m, why, sizeof why);
        print_members(&m, got, sizeof got);
        if (ok && m.n)
            ok = m.rank[m.mine] == c->rank;
        check(c->name, ok ? !strcmp(got, c->want) : *c->want && strstr(why, c->want), "%s %s", got,
              why);
    }
    check("grid limits",
          grid_ok(1, 1) && grid_ok(32, 32) && !grid_ok(0, 1) && !grid_ok(33, 32) &&
              !grid_ok((uint64_t)1 << 32, (uint64_t)1 << 32),
          "grid_ok");
}

static void test_routes(void) {
    const int64_t pairs[] = {0, 1, 1, 2, 3, 3};
    Groups g = {GROUP_PARTITION, pairs, 3, 2};
    Route r;
    char why[200] = "", got[200];
    bool ok = groups_route(&g, (Grid){2, 5}, 6, &r, why, sizeof why); // replica 1, partition 1
    print_members(&r.members, got, sizeof got);
    check("route",
          ok && r.source == 5 && r.target == 7 && !strcmp(got, "5 6 7 8") && r.members.mine == 1,
          "%u %u %s %s", r.source, r.target, got, why);
    ok = groups_route(&g, (Grid){2, 5}, 5, &r, why, sizeof why);
    check("a source only", ok && r.source == COMM_NONE && r.target == 6, "%u %u", r.source,
          r.target);
    ok = groups_route(&g, (Grid){2, 5}, 4, &r, why, sizeof why);
    check("no part", ok && !r.members.n && r.source == COMM_NONE && r.target == COMM_NONE, "%u",
          r.source);
    check("no such target",
          !groups_route(&g, (Grid){2, 3}, 0, &r, why, sizeof why) &&
              strstr(why, "names partition 3"),
          "%s", why);
    const int64_t twice[] = {0, 1, 0, 2};
    g = (Groups){GROUP_FLAT, twice, 2, 2};
    check("one source, two targets",
          !groups_route(&g, (Grid){3, 1}, 0, &r, why, sizeof why) && strstr(why, "same source"),
          "%s", why);
}

// --- ranks as threads --------------------------------------------------------------------------

typedef struct Rank {
    CommRank *comm;
    uint32_t n, rank;
    void (*run)(struct Rank *r);
    bool ok; // what the test saw
    char why[COMM_WHY_BYTES];
    pthread_t thread;
} Rank;

static void *rank_main(void *arg) {
    Rank *r = arg;
    r->run(r);
    return NULL;
}

// Runs a function on n ranks; each must end or fail by itself.
static uint32_t run_ranks(uint32_t n, void (*run)(Rank *), Rank *ranks) {
    Comm *c = comm_make((Grid){n, 1}, 1);
    for (uint32_t i = 0; i < n; i++) {
        ranks[i] = (Rank){.comm = comm_rank(c, i), .n = n, .rank = i, .run = run};
        pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
    uint32_t failed = comm_failed(c);
    comm_free(c);
    return failed;
}

static bool meet(Rank *r, const char *name, uint64_t sign, const uint32_t *members, uint32_t n,
                 const CommBuf *buf, CommPost *post) {
    *post = (CommPost){.signature = sign, .name = name, .nbufs = 1, .bufs = buf};
    if (comm_meet(r->comm, post, members, n))
        return true;
    snprintf(r->why, sizeof r->why, "%s", comm_why(r->comm));
    return false;
}

static const uint32_t everybody[RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};

// Sums over all, over even and odd ranks, and over both with a sync, again and again.
static void busy_rank(Rank *r) {
    uint32_t half[RANKS_MAX], nhalf = 0;
    for (uint32_t i = r->rank % 2; i < r->n; i += 2)
        half[nhalf++] = i;
    r->ok = true;
    for (uint32_t round = 0; round < 300 && r->ok; round++) {
        bool all = round % 3 != 1;
        const uint32_t *members = all ? everybody : half;
        uint32_t n = all ? r->n : nhalf, sum = 0, want = 0, again = 0;
        uint32_t mine = r->rank * 1000 + round, out = 0;
        CommBuf buf = {.in = &mine, .out = &out, .in_bytes = sizeof mine};
        CommPost post;
        if ((round + r->rank) % 64 == 0)
            usleep(200);
        r->ok = meet(r, "sum", round, members, n, &buf, &post);
        for (uint32_t p = 0; p < n && r->ok; p++) {
            sum += *(const uint32_t *)comm_post(r->comm, p)->bufs[0].in;
            want += members[p] * 1000 + round;
        }
        out = sum + r->rank;
        if (r->ok && round % 3 == 2) {
            r->ok = comm_sync(r->comm);
            for (uint32_t p = 0; p < n && r->ok; p++)
                again += *(const uint32_t *)comm_post(r->comm, p)->bufs[0].out - members[p] == want;
            r->ok = r->ok && again == n;
        }
        if (r->ok)
            comm_leave(r->comm);
        mine = 0xdeadbeef; // nobody reads it any more
        r->ok = r->ok && sum == want;
    }
    comm_end(r->comm);
}

static void test_meetings(void) {
    for (uint32_t n = 1; n <= RANKS_MAX; n++) {
        Rank ranks[RANKS_MAX];
        char name[64];
        bool ok = run_ranks(n, busy_rank, ranks) == COMM_NONE;
        for (uint32_t i = 0; i < n; i++)
            ok = ok && ranks[i].ok;
        snprintf(name, sizeof name, "300 meetings of %u ranks", n);
        check(name, ok, "%s", ranks[0].why);
    }
}

// --- failing -----------------------------------------------------------------------------------

static void end_or_fail(Rank *r) {
    if (r->ok)
        comm_end(r->comm);
    else
        comm_fail(r->comm, NULL);
}

static void failing_rank(Rank *r) { // rank 2 never comes
    int v = 0;
    CommBuf buf = {.in = &v, .in_bytes = sizeof v};
    CommPost post;
    if (r->rank == 2) {
        usleep(2000);
        comm_fail(r->comm, NULL);
        return;
    }
    r->ok = meet(r, "sum", 1, everybody, r->n, &buf, &post);
    end_or_fail(r);
}

static void
failing_inside(Rank *r) { // rank 1 fails between meet and leave; others read its operand
    int *v = malloc(sizeof *v);
    *v = 1;
    CommBuf buf = {.in = v, .in_bytes = sizeof *v};
    CommPost post;
    r->ok = meet(r, "sum", 1, everybody, r->n, &buf, &post);
    if (r->ok && r->rank == 1) {
        usleep(5000); // the others sleep in comm_sync by then, but for the last
        comm_fail(r->comm, NULL);
        r->ok = false;
        free(v);
        return;
    }
    usleep(r->rank == 3 ? 10000 : 500 * r->rank);
    int sum = 0;
    for (uint32_t p = 0; p < r->n && r->ok; p++)
        sum += *(const int *)comm_post(r->comm, p)->bufs[0].in;
    bool synced = r->ok && comm_sync(r->comm);
    if (r->ok)
        comm_leave(r->comm);
    free(v);
    r->ok = r->ok && synced && sum == (int)r->n;
    end_or_fail(r);
}

static void different_ops(Rank *r) {
    int v = 0;
    CommBuf buf = {.in = &v, .in_bytes = sizeof v};
    CommPost post;
    bool odd = r->rank == 1;
    r->ok = meet(r, odd ? "all_gather" : "all_reduce", odd, everybody, r->n, &buf, &post);
    if (r->ok)
        comm_leave(r->comm);
    end_or_fail(r);
}

static void other_order(Rank *r) { // same op twice in one program, the second first on rank 1
    int v = 0;
    CommBuf buf = {.in = &v, .in_bytes = sizeof v};
    r->ok = true;
    for (uint32_t i = 0; i < 2 && r->ok; i++) {
        CommPost post = {.signature = 5,
                         .program = everybody,
                         .op = r->rank == 1 ? 1 - i : i,
                         .name = "all_reduce",
                         .nbufs = 1,
                         .bufs = &buf};
        r->ok = comm_meet(r->comm, &post, everybody, r->n);
        if (r->ok)
            comm_leave(r->comm);
        else
            snprintf(r->why, sizeof r->why, "%s", comm_why(r->comm));
    }
    end_or_fail(r);
}

static void other_size(Rank *r) { // a liar with the right signature reads nobody's memory
    char v[8] = {0};
    CommBuf buf = {.in = v, .in_bytes = r->rank ? 4 : 8};
    CommPost post;
    r->ok = meet(r, "sum", 1, everybody, r->n, &buf, &post);
    if (r->ok)
        comm_leave(r->comm);
    end_or_fail(r);
}

static void early_end(Rank *r) { // rank 0 is over before the others come
    int v = 0;
    CommBuf buf = {.in = &v, .in_bytes = sizeof v};
    CommPost post;
    r->ok = r->rank == 0 || meet(r, "sum", 1, everybody, r->n, &buf, &post);
    end_or_fail(r);
}

static void circle(Rank *r) { // everybody waits for the next
    int v = 0;
    CommBuf buf = {.in = &v, .in_bytes = sizeof v};
    CommPost post;
    uint32_t next = (r->rank + 1) % r->n, a = r->rank < next ? r->rank : next;
    uint32_t pair[2] = {a, r->rank < next ? next : r->rank};
    r->ok = meet(r, "sum", a * 10 + pair[1], pair, 2, &buf, &post);
    end_or_fail(r);
}

static void lonely_recv(Rank *r) {
    int v = 0;
    CommBuf buf = {.out = &v, .in_bytes = sizeof v};
    r->ok = comm_recv(r->comm, 3, COMM_ANY, &buf, 1);
    snprintf(r->why, sizeof r->why, "%s", comm_why(r->comm));
    end_or_fail(r);
}

static void test_failing(void) {
    static const struct {
        const char *name;
        void (*run)(Rank *);
        uint32_t n;
        const char *origin_says; // a part of what the rank that failed first has to say; "" nothing
    } cases[] = {
        {"a failing rank releases the others", failing_rank, 5, ""},
        {"a rank fails inside a meeting", failing_inside, 4, ""},
        {"different collectives", different_ops, 3, "same collectives in the same order"},
        {"another order", other_order, 2, "same collectives in the same order"},
        {"another size", other_size, 2, "same collectives in the same order"},
        {"one has ended", early_end, 3, "device 0 has ended"},
        {"a circle", circle, 3, "never completes"},
        {"nobody sends", lonely_recv, 2, "waits for a message on channel 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Rank ranks[RANKS_MAX];
        uint32_t failed = run_ranks(cases[i].n, cases[i].run, ranks);
        bool ok = failed != COMM_NONE && strstr(ranks[failed].why, cases[i].origin_says);
        bool all = true; // but those that ended before
        for (uint32_t r = 0; r < cases[i].n; r++)
            all = all && (!ranks[r].ok || cases[i].run == early_end);
        check(cases[i].name, ok && all, "first %u: %s", failed,
              failed == COMM_NONE ? "" : ranks[failed].why);
    }
}

// --- messages ----------------------------------------------------------------------------------

static void ring_rank(Rank *r) { // all send first, then receive; two in order
    uint32_t next = (r->rank + 1) % r->n, prev = (r->rank + r->n - 1) % r->n;
    (void)next;
    r->ok = true;
    for (int i = 0; i < 2; i++) {
        uint32_t v[2] = {r->rank, (uint32_t)i};
        CommBuf bufs[2] = {{.in = &v[0], .in_bytes = 4}, {.in = &v[1], .in_bytes = 4}};
        r->ok = r->ok && comm_send(r->comm, 1, r->rank, bufs, 2);
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t a = 99, b = 99;
        CommBuf bufs[2] = {{.out = &a, .in_bytes = 4}, {.out = &b, .in_bytes = 4}};
        r->ok = r->ok && comm_recv(r->comm, 1, prev, bufs, 2) && a == prev && b == i;
    }
    end_or_fail(r);
}

static void wrong_message(Rank *r) {
    uint64_t v = 0;
    CommBuf buf = {.in = &v, .out = &v, .in_bytes = r->rank ? 8 : 4};
    r->ok = r->rank ? comm_send(r->comm, 1, COMM_ANY, &buf, 1)
                    : comm_recv(r->comm, 1, COMM_ANY, &buf, 1);
    snprintf(r->why, sizeof r->why, "%s", comm_why(r->comm));
    end_or_fail(r);
}

static void test_messages(void) {
    Rank ranks[RANKS_MAX];
    bool ok = run_ranks(5, ring_rank, ranks) == COMM_NONE;
    for (int i = 0; i < 5; i++)
        ok = ok && ranks[i].ok;
    check("messages in order", ok, "%s", ranks[0].why);
    uint32_t failed = run_ranks(2, wrong_message, ranks);
    check("a message of another size", failed == 0 && strstr(ranks[0].why, "8 bytes where 4"), "%s",
          ranks[0].why);
    Comm *c = comm_make((Grid){1, 2}, 1); // left in the queue: freed
    CommBuf buf = {.in = "x", .in_bytes = 1};
    comm_send(comm_rank(c, 0), COMM_INFEED, COMM_ANY, &buf, 1);
    comm_reset(c);
    comm_send(comm_rank(c, 1), 7, 1, &buf, 1);
    comm_free(c);
}

// --- programs ----------------------------------------------------------------------------------

typedef struct Many { // one program on n devices
    otrn_env *env;
    otrn_exe *exe;
    uint32_t n;
    void *args[RANKS_MAX][2], *results[RANKS_MAX][2];
    otrn_error err;
} Many;

static bool many_open(Many *m, const char *text, uint32_t n, const char *threads) {
    const otrn_option options[] = {{"cache", "off"}, {"threads", threads}};
    *m = (Many){.n = n, .err = OTRN_ERROR_INIT};
    if (otrn_open(options, 2, &m->env, &m->err) != OTRN_OK ||
        otrn_compile(m->env, text, strlen(text), "test", &m->exe, &m->err) != OTRN_OK)
        return false;
    for (uint32_t r = 0; r < n; r++) {
        for (size_t i = 0; i < otrn_exe_num_args(m->exe); i++)
            m->args[r][i] = calloc(1, otrn_type_bytes(otrn_exe_arg_type(m->exe, i)) + 1);
        for (size_t i = 0; i < otrn_exe_num_results(m->exe); i++)
            m->results[r][i] = calloc(1, otrn_type_bytes(otrn_exe_result_type(m->exe, i)) + 1);
    }
    return true;
}

static void many_close(Many *m) {
    for (uint32_t r = 0; r < m->n; r++)
        for (int i = 0; i < 2; i++) {
            free(m->args[r][i]);
            free(m->results[r][i]);
        }
    otrn_exe_free(m->exe);
    otrn_close(m->env);
}

static otrn_status many_execute(Many *m, uint32_t replicas, uint32_t partitions) {
    const void *const *args[RANKS_MAX];
    void *const *results[RANKS_MAX];
    for (uint32_t r = 0; r < m->n; r++) {
        args[r] = (const void *const *)m->args[r];
        results[r] = m->results[r];
    }
    m->err = (otrn_error)OTRN_ERROR_INIT;
    return run_sized_many(m->exe, replicas, partitions, args, results, &m->err);
}

static float noise(uint32_t r, size_t i) { // sums of these depend on their order
    uint32_t x = (uint32_t)(i * 2654435761u) ^ (r * 40503u + 12345u);
    x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
    return ((float)x - 2147483648.0f) * (r % 2 ? 1e-3f : 1.7f);
}

static const char sum_text[] = "func.func @main(%%a: tensor<%zuxf32>) -> tensor<%zuxf32> {\n"
                               "  %%r = \"stablehlo.all_reduce\"(%%a) ({\n"
                               "    ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n"
                               "      %%s = stablehlo.add %%x, %%y : tensor<f32>\n"
                               "      stablehlo.return %%s : tensor<f32>\n"
                               "  }) {replica_groups = dense<> : tensor<0x0xi64>,\n"
                               "      channel_handle = #stablehlo.channel_handle<handle = 1, type "
                               "= 0>, use_global_device_ids}\n"
                               "    : (tensor<%zuxf32>) -> tensor<%zuxf32>\n"
                               "  return %%r : tensor<%zuxf32>\n"
                               "}\n";

// Positions [a, b) split behind the largest power of two below their number.
static float tree_sum(uint32_t a, uint32_t b, uint32_t round, size_t i) {
    uint32_t half = 1;
    if (b - a == 1)
        return noise(a + round, i);
    while (2 * half < b - a)
        half *= 2;
    return tree_sum(a, a + half, round, i) + tree_sum(a + half, b, round, i);
}

// Every rank has the bits of the tree's sum, twice, with one thread and with several.
static void test_sum(uint32_t n, size_t elems, const char *threads) {
    char text[1024], name[80];
    Many m;
    snprintf(text, sizeof text, sum_text, elems, elems, elems, elems, elems);
    snprintf(name, sizeof name, "sum of %zu on %u devices, %s threads", elems, n, threads);
    if (!many_open(&m, text, n, threads)) {
        check(name, false, "%s", m.err.text);
        return;
    }
    size_t wrong = 0;
    otrn_status s = OTRN_OK;
    for (uint32_t round = 0; round < 2 && s == OTRN_OK; round++) {
        for (uint32_t r = 0; r < n; r++) {
            memset(m.results[r][0], 0xee, elems * 4);
            for (size_t i = 0; i < elems; i++)
                ((float *)m.args[r][0])[i] = noise(r + round, i);
        }
        s = many_execute(&m, 1, n);
        for (size_t i = 0; i < elems && s == OTRN_OK; i++) {
            float want = tree_sum(0, n, round, i);
            for (uint32_t r = 0; r < n; r++)
                wrong += memcmp(&want, (float *)m.results[r][0] + i, 4) != 0;
        }
    }
    check(name, s == OTRN_OK && !wrong, "%zu wrong, %s", wrong, m.err.text);
    many_close(&m);
}

// Groups of two that are not neighbours; the second counts its positions backwards.
static const char groups_text[] =
    "func.func @main(%a: tensor<4x6xbf16>) -> (tensor<4x3xbf16>, tensor<ui32>) {\n"
    "  %p = stablehlo.partition_id : tensor<ui32>\n"
    "  %r = \"stablehlo.reduce_scatter\"(%a) ({\n"
    "    ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):\n"
    "      %s = stablehlo.maximum %x, %y : tensor<bf16>\n"
    "      stablehlo.return %s : tensor<bf16>\n"
    "  }) {scatter_dimension = 1 : i64, replica_groups = dense<[[0, 2], [3, 1]]> : "
    "tensor<2x2xi64>,\n"
    "      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, "
    "use_global_device_ids}\n"
    "    : (tensor<4x6xbf16>) -> tensor<4x3xbf16>\n"
    "  return %r, %p : tensor<4x3xbf16>, tensor<ui32>\n"
    "}\n";

static void test_scatter(void) {
    Many m;
    if (!many_open(&m, groups_text, 4, "2")) {
        check("reduce_scatter", false, "%s", m.err.text);
        return;
    }
    for (uint32_t r = 0; r < 4; r++)
        for (uint32_t i = 0; i < 24; i++)
            ((uint16_t *)m.args[r][0])[i] = bf16_from_f32((float)((i * 7 + r * 11) % 23));
    otrn_status s = many_execute(&m, 2, 2);
    const uint32_t mate[4] = {2, 3, 0, 1}, part[4] = {0, 1, 1, 0};
    int wrong = 0;
    for (uint32_t r = 0; r < 4 && s == OTRN_OK; r++) {
        wrong += *(uint32_t *)m.results[r][1] != r % 2;
        for (uint32_t i = 0; i < 12; i++) {
            uint32_t at = i / 3 * 6 + part[r] * 3 + i % 3;
            uint32_t x = (at * 7 + r * 11) % 23, y = (at * 7 + mate[r] * 11) % 23;
            wrong += bf16_to_f32(((uint16_t *)m.results[r][0])[i]) != (float)(x > y ? x : y);
        }
    }
    check("reduce_scatter of groups on a 2 x 2 grid", s == OTRN_OK && !wrong, "%d wrong, %s", wrong,
          m.err.text);
    s = many_execute(&m, 1, 4);
    check("the same on a 1 x 4 grid", s == OTRN_OK && *(uint32_t *)m.results[3][1] == 3, "%s",
          m.err.text);
    check("too many devices", otrn_execute_many(m.exe, 64, 64, NULL, 0, NULL, 0, &m.err) == OTRN_USAGE,
          "%s", m.err.text);
    s = run_sized(m.exe, (const void *const *)m.args[0], m.results[0], &m.err);
    check("a group on one device", s == OTRN_CHECK && strstr(m.err.text, "names device 2"), "%s",
          m.err.text);
    many_close(&m);
}

// Each group loops as often as its devices say, adding up; then all meet.
static const char loop_text[] =
    "func.func @main(%n: tensor<i32>) -> tensor<i32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %l:2 = stablehlo.while(%i = %zero, %s = %one) : tensor<i32>, tensor<i32>\n"
    "  cond {\n"
    "    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %c : tensor<i1>\n"
    "  } do {\n"
    "    %t = \"stablehlo.all_reduce\"(%s) ({\n"
    "      ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
    "        %a = stablehlo.add %x, %y : tensor<i32>\n"
    "        stablehlo.return %a : tensor<i32>\n"
    "    }) {replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>} : (tensor<i32>) -> "
    "tensor<i32>\n"
    "    %j = stablehlo.add %i, %one : tensor<i32>\n"
    "    stablehlo.return %j, %t : tensor<i32>, tensor<i32>\n"
    "  }\n"
    "  %r = \"stablehlo.all_reduce\"(%l#1) ({\n"
    "    ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
    "      %a = stablehlo.add %x, %y : tensor<i32>\n"
    "      stablehlo.return %a : tensor<i32>\n"
    "  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<i32>) -> "
    "tensor<i32>\n"
    "  return %r : tensor<i32>\n"
    "}\n";

static void test_loops(void) {
    Many m;
    bool ok = many_open(&m, loop_text, 4, "1");
    if (!ok) {
        check("loops of different length", false, "%s", m.err.text);
        return;
    }
    for (uint32_t r = 0; r < 4; r++)
        *(int32_t *)m.args[r][0] = r < 2 ? 3 : 11;
    otrn_status s = many_execute(&m, 4, 1);
    check("loops of different length",
          s == OTRN_OK && *(int32_t *)m.results[1][0] == 2 * 8 + 2 * 2048, "%d %s",
          *(int32_t *)m.results[1][0], m.err.text);
    *(int32_t *)m.args[2][0] = 12; // once more than its mate
    s = many_execute(&m, 4, 1);
    check("a loop that its mate has left", s == OTRN_CHECK && strstr(m.err.text, "same order"),
          "%s", m.err.text);
    many_close(&m);
}

// Device 2's own check fails before the collective; the same program runs again with good
// arguments.
static const char check_text[] = "func.func @main(%a: tensor<4xi32>) -> tensor<4xi32> {\n"
                                 "  %c = stablehlo.constant dense<7> : tensor<4xi32>\n"
                                 "  check.expect_eq %a, %c : tensor<4xi32>\n"
                                 "  %r = \"stablehlo.all_reduce\"(%a) ({\n"
                                 "    ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"
                                 "      %s = stablehlo.add %x, %y : tensor<i32>\n"
                                 "      stablehlo.return %s : tensor<i32>\n"
                                 "  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} "
                                 ": (tensor<4xi32>) -> tensor<4xi32>\n"
                                 "  return %r : tensor<4xi32>\n"
                                 "}\n";

static void test_failing_device(void) {
    Many m;
    if (!many_open(&m, check_text, 4, "2")) {
        check("failing device", false, "%s", m.err.text);
        return;
    }
    for (int round = 0; round < 20; round++) {
        for (uint32_t r = 0; r < 4; r++)
            for (int i = 0; i < 4; i++)
                ((int32_t *)m.args[r][0])[i] = round % 2 == 0 && r == 2 && i == 1 ? 8 : 7;
        otrn_status s = many_execute(&m, 4, 1);
        bool ok = round % 2 ? s == OTRN_OK && ((int32_t *)m.results[3][0])[1] == 28
                            : s == OTRN_CHECK && strstr(m.err.text, "device 2: check failed") &&
                                  m.err.line == 3;
        if (!ok || round == 19)
            check("a failing device and the run after it", ok, "round %d: %s", round, m.err.text);
        if (!ok)
            break;
    }
    many_close(&m);
}

int main(void) {
    alarm(ALARM_SECONDS);
    test_groups();
    test_routes();
    test_meetings();
    test_failing();
    test_messages();
    for (uint32_t n = 1; n <= RANKS_MAX; n++) {
        test_sum(n, 13, "2");
        test_sum(n, 10007, n % 2 ? "1" : "4");
    }
    test_scatter();
    test_loops();
    test_failing_device();
    return failures != 0;
}
