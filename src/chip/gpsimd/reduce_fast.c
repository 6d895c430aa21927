// SPDX-License-Identifier: Apache-2.0
// reduce_fast.c — sums, products, extremes and bit ops over one tensor, in two shapes:
//
//   runs     the contiguous axis is reduced: every output folds contiguous runs
//   columns  it is kept: rows fold into a row of accumulators
//
// Floats narrower than f32 accumulate in f32 and are rounded when written. Orders:
//   a run of up to RUN_BLOCK elements: 64 partials (gp_body_reduce.h); a longer one: the largest
//   power-of-two number of blocks on the left, the rest on the right, folded pairwise;
//   columns: row chunks whose number follows from the shape, rows in order inside, chunks in order.
// The initial value joins last.
#include "chip/gpsimd/reduce.h"

#define RUN_BLOCK 4096
#define RUN_PART 65536 // power-of-two multiple of RUN_BLOCK: what one task folds of a long run
#define COL_BLOCK 512
#define COL_CHUNKS 16

bool red_is_fast(const Kern *k, RedOp *op) {
    const KProg *p = &k->regions[0];
    int in = k->in[0].dtype, body = p->dtypes[0];
    if (k->nout != 1 || p->ncaptures || !prog_red_op(p, op))
        return false;
    bool widens = lane_class(in) == LC_F32 && body == DT_F32;
    if ((in != body && !widens) || k->in[1].dtype != body ||
        (dtype_row(body)->bits < 8 && body != DT_I1))
        return false;
    return gp_level_portable.run[*op][lane_class(body)] != NULL;
}

typedef struct FastRed {
    const GpCall *c;
    const RedShape *s;
    const GpLevel *level;
    RunFn *run;             // reads the operand's type, or the compute type when that was widened
    RowsFn *rows, *rows_in; // over the compute type; the same over what `run` reads
    QuietFn *quiet;         // of the compute type
    ConvFn *widen, *narrow; // to and from the compute type; NULL: none
    bool direct;            // operands need no widening first
    size_t in_bytes, acc_bytes, out_bytes;
    char *parts;    // partial results, in the compute type
    int64_t nparts; // runs: parts of a run; columns: chunks of rows
} FastRed;

typedef union One { // one value of any compute type
    char bytes[16];
    double align;
} One;

static void join(const FastRed *j, void *acc, const void *value, size_t n) { // acc = acc op value
    j->rows(acc, value, n, 1, n);
}

static void store(const FastRed *j, int64_t out, void *acc, size_t n) {
    char *dst = (char *)j->c->out[0] + out * (int64_t)j->out_bytes;
    if (j->quiet)
        j->quiet(acc, n);
    if (j->narrow)
        j->narrow(dst, acc, n);
    else
        memcpy(dst, acc, n * j->acc_bytes);
}

static void load_init(const FastRed *j, void *one) {
    if (j->narrow) // the body's type: widened when it is narrow
        j->level->widen[j->c->k->in[1].dtype](one, j->c->in[1], 1);
    else
        memcpy(one, j->c->in[1], j->acc_bytes);
}

// --- runs --------------------------------------------------------------------------------------

static void run_block(const FastRed *j, void *dst, const char *x, int64_t n) {
    if (j->direct) {
        j->run(dst, x, (size_t)n);
        return;
    }
    _Alignas(64) float wide[RUN_BLOCK];
    j->widen(wide, x, (size_t)n);
    j->run(dst, wide, (size_t)n);
}

static int64_t left_half(int64_t n, int64_t unit) { // largest unit * 2^i below n
    int64_t m = unit;
    while (m * 2 < n)
        m *= 2;
    return m;
}

static void run_fold(const FastRed *j, void *dst, const char *x, int64_t n) {
    if (n <= RUN_BLOCK) {
        run_block(j, dst, x, n);
        return;
    }
    int64_t m = left_half(n, RUN_BLOCK);
    One right;
    run_fold(j, dst, x, m);
    run_fold(j, &right, x + m * (int64_t)j->in_bytes, n - m);
    join(j, dst, &right, 1);
}

static void parts_fold(const FastRed *j, void *dst, const char *parts, int64_t n) {
    if (n == 1) {
        memcpy(dst, parts, j->acc_bytes);
        return;
    }
    int64_t m = left_half(n, 1);
    One right;
    parts_fold(j, dst, parts, m);
    parts_fold(j, &right, parts + m * (int64_t)j->acc_bytes, n - m);
    join(j, dst, &right, 1);
}

static void run_finish(const FastRed *j, int64_t out, void *acc) {
    One init;
    load_init(j, &init);
    join(j, &init, acc, 1);
    store(j, out, &init, 1);
}

// Outputs [begin, end): every run of each, then the initial value.
static void run_outs(void *arg, size_t begin, size_t end) {
    const FastRed *j = arg;
    const RedShape *s = j->s;
    int inner = s->nred ? s->nred - 1 : 0;
    int64_t len = s->nred ? s->red[inner].n : 1, runs = s->reds / len;
    for (size_t o = begin; o < end; o++) {
        int64_t base = red_offset(s->kept, s->nkept, (int64_t)o);
        One acc, next;
        for (int64_t r = 0; r < runs; r++) {
            int64_t at = base + red_offset(s->red, inner, r);
            run_fold(j, r ? &next : &acc, (const char *)j->c->in[0] + at * (int64_t)j->in_bytes,
                     len);
            if (r)
                join(j, &acc, &next, 1);
        }
        run_finish(j, (int64_t)o, &acc);
    }
}

static void run_parts(void *arg, size_t begin, size_t end) { // parts [begin, end) of all outputs
    const FastRed *j = arg;
    const RedShape *s = j->s;
    for (size_t t = begin; t < end; t++) {
        int64_t out = (int64_t)t / j->nparts, part = (int64_t)t % j->nparts;
        int64_t from = part * RUN_PART, len = s->reds - from < RUN_PART ? s->reds - from : RUN_PART;
        int64_t at = red_offset(s->kept, s->nkept, out) + from;
        run_fold(j, j->parts + t * j->acc_bytes,
                 (const char *)j->c->in[0] + at * (int64_t)j->in_bytes, len);
    }
}

static int64_t run_part_count(const RedShape *s) { // 1: not cut
    return s->nred == 1 && s->reds > RUN_PART ? (s->reds + RUN_PART - 1) / RUN_PART : 1;
}

static void runs_run(FastRed *j) {
    const RedShape *s = j->s;
    j->nparts = run_part_count(s);
    if (j->nparts == 1) {
        size_t grain = GP_GRAIN_BYTES / ((size_t)s->reds * j->in_bytes);
        pool_run(j->c->pool, (size_t)s->outs, grain ? grain : 1, run_outs, j);
        return;
    }
    pool_run(j->c->pool, (size_t)(s->outs * j->nparts), 1, run_parts, j);
    for (int64_t o = 0; o < s->outs; o++) {
        One acc;
        parts_fold(j, &acc, j->parts + o * j->nparts * (int64_t)j->acc_bytes, j->nparts);
        run_finish(j, o, &acc);
    }
}

// --- columns -----------------------------------------------------------------------------------

#define WIDE_MAX 64 // narrow rows are folded several at a time, up to this many elements

static void start(const FastRed *j, void *acc, const char *x, size_t n) { // acc = x
    if (j->widen)
        j->widen(acc, x, n);
    else
        memcpy(acc, x, n * j->acc_bytes);
}

// acc = acc op rows; rows of `cols` elements at x, `pitch` apart, of a type that rows_in reads.
static void fold_rows(const FastRed *j, char *acc, const char *x, int64_t pitch, int64_t rows,
                      int64_t cols) {
    int64_t group = WIDE_MAX / cols, wide = group * cols;
    int64_t b = (int64_t)(j->direct ? j->in_bytes : j->acc_bytes);
    if (pitch == cols && group >= 2 && rows >= 2 * group) {
        One sums[WIDE_MAX];
        if (j->direct)
            start(j, sums, x, (size_t)wide);
        else
            memcpy(sums, x, (size_t)(wide * b));
        j->rows_in(sums, x + wide * b, (size_t)wide, (size_t)(rows / group - 1), (size_t)wide);
        j->rows(acc, sums, (size_t)cols, (size_t)group, (size_t)cols);
        int64_t done = rows / group * group;
        x += done * pitch * b;
        rows -= done;
    }
    j->rows_in(acc, x, (size_t)pitch, (size_t)rows, (size_t)cols);
}

// The same from the operand's type, widening a few rows at a time.
static void fold_rows_any(const FastRed *j, char *acc, const char *x, int64_t pitch, int64_t rows,
                          int64_t cols) {
    if (j->direct) {
        fold_rows(j, acc, x, pitch, rows, cols);
        return;
    }
    _Alignas(64) float wide[8 * COL_BLOCK];
    int64_t most = 8 * COL_BLOCK / cols;
    for (int64_t r = 0; r < rows; r += most) {
        int64_t m = rows - r < most ? rows - r : most;
        if (pitch == cols)
            j->widen(wide, x + r * pitch * (int64_t)j->in_bytes, (size_t)(m * cols));
        else
            for (int64_t i = 0; i < m; i++)
                j->widen(wide + i * cols, x + (r + i) * pitch * (int64_t)j->in_bytes, (size_t)cols);
        fold_rows(j, acc, (const char *)wide, cols, m, cols);
    }
}

// Rows [from, to) of the flattened reduced range, columns at `base`. The first row starts acc.
static void fold_range(const FastRed *j, char *acc, int64_t base, int64_t from, int64_t to,
                       int64_t cols) {
    const RedShape *s = j->s;
    const RedAxis *in = &s->red[s->nred - 1];
    for (int64_t r = from; r < to;) {
        int64_t stay = in->n - r % in->n, m = to - r < stay ? to - r : stay;
        int64_t at = base + red_offset(s->red, s->nred, r);
        const char *x = (const char *)j->c->in[0] + at * (int64_t)j->in_bytes;
        int64_t first = r == from;
        if (first)
            start(j, acc, x, (size_t)cols);
        if (m > first)
            fold_rows_any(j, acc, x + first * in->stride * (int64_t)j->in_bytes, in->stride,
                          m - first, cols);
        r += m;
    }
}

typedef struct ColShape {
    int64_t inner, blocks, outer, chunks;
} ColShape;

static ColShape col_shape(const RedShape *s) {
    ColShape c = {.inner = s->kept[s->nkept - 1].n};
    c.blocks = (c.inner + COL_BLOCK - 1) / COL_BLOCK;
    c.outer = s->outs / c.inner;
    int64_t rows_min =
        1 + 32768 / (c.inner < COL_BLOCK ? c.inner : COL_BLOCK); // rows worth a chunk
    c.chunks = c.outer * c.blocks >= COL_CHUNKS ? 1 : s->reds / rows_min;
    c.chunks = c.chunks < 1 ? 1 : c.chunks > COL_CHUNKS ? COL_CHUNKS : c.chunks;
    return c;
}

static void col_finish(const FastRed *j, int64_t out, const char *parts, int64_t nparts,
                       int64_t pitch, int64_t cols) {
    _Alignas(64) char acc[COL_BLOCK * 16];
    One init;
    load_init(j, &init);
    gp_fill(acc, &init, j->acc_bytes, (size_t)cols);
    j->rows(acc, parts, (size_t)pitch, (size_t)nparts, (size_t)cols);
    store(j, out, acc, (size_t)cols);
}

// Tasks [begin, end): chunk, column block, outer index; innermost is the chunk.
static void col_tasks(void *arg, size_t begin, size_t end) {
    const FastRed *j = arg;
    const RedShape *s = j->s;
    ColShape c = col_shape(s);
    for (size_t t = begin; t < end; t++) {
        int64_t chunk = (int64_t)t % c.chunks, block = (int64_t)t / c.chunks % c.blocks;
        int64_t outer = (int64_t)t / c.chunks / c.blocks;
        int64_t col = block * COL_BLOCK,
                cols = c.inner - col < COL_BLOCK ? c.inner - col : COL_BLOCK;
        int64_t base = red_offset(s->kept, s->nkept, outer * c.inner) + col;
        int64_t from = s->reds * chunk / c.chunks, to = s->reds * (chunk + 1) / c.chunks;
        if (c.chunks > 1) {
            fold_range(
                j, j->parts + ((outer * c.chunks + chunk) * c.inner + col) * (int64_t)j->acc_bytes,
                base, from, to, cols);
            continue;
        }
        _Alignas(64) char acc[COL_BLOCK * 16];
        fold_range(j, acc, base, from, to, cols);
        col_finish(j, outer * c.inner + col, acc, 1, cols, cols);
    }
}

static void cols_run(FastRed *j) {
    ColShape c = col_shape(j->s);
    int64_t task_rows = j->s->reds / c.chunks + 1;
    int64_t cols = c.inner < COL_BLOCK ? c.inner : COL_BLOCK;
    size_t grain = GP_GRAIN_BYTES / ((size_t)(task_rows * cols) * j->in_bytes);
    pool_run(j->c->pool, (size_t)(c.outer * c.blocks * c.chunks), grain ? grain : 1, col_tasks, j);
    for (int64_t o = 0; c.chunks > 1 && o < c.outer; o++)
        for (int64_t col = 0; col < c.inner; col += COL_BLOCK)
            col_finish(j, o * c.inner + col,
                       j->parts + (o * c.chunks * c.inner + col) * (int64_t)j->acc_bytes, c.chunks,
                       c.inner, c.inner - col < COL_BLOCK ? c.inner - col : COL_BLOCK);
}

// --- entry -------------------------------------------------------------------------------------

size_t red_fast_scratch(const Kern *k, const RedShape *s) {
    size_t bytes = lane_class_bytes[lane_class(k->regions[0].dtypes[0])];
    if (!s->outs || !s->reds)
        return 0;
    if (s->inner_red)
        return (size_t)(s->outs * run_part_count(s)) * bytes;
    ColShape c = col_shape(s);
    return c.chunks > 1 ? (size_t)(s->outs * c.chunks) * bytes : 0;
}

otrn_status red_fast_run(const GpCall *c, const RedShape *s, RedOp op) {
    const Kern *k = c->k;
    int body = k->regions[0].dtypes[0];
    LaneClass cls = lane_class(body);
    FastRed j = {.c = c, .s = s, .level = gp_level(c->level), .parts = c->scratch};
    j.widen = cls == LC_F32 ? j.level->widen[k->in[0].dtype] : NULL;
    j.direct = !j.widen || k->in[0].dtype == DT_BF16;
    LaneClass read = j.direct ? lane_class_direct(k->in[0].dtype) : cls;
    j.run = j.level->run[op][read];
    j.rows = j.level->rows[op][cls];
    j.rows_in = j.level->rows[op][read];
    j.narrow = cls == LC_F32 ? j.level->narrow[body] : NULL;
    j.quiet = j.level->quiet[cls];
    j.in_bytes = dtype_bytes(k->in[0].dtype);
    j.acc_bytes = lane_class_bytes[cls];
    j.out_bytes = dtype_bytes(body);
    if (!s->reds) {
        fill_run(c->pool, c->out[0], c->in[1], j.out_bytes, (size_t)s->outs);
        return OTRN_OK;
    }
    if (s->inner_red)
        runs_run(&j);
    else
        cols_run(&j);
    return OTRN_OK;
}
