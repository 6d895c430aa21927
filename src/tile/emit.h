// SPDX-License-Identifier: Apache-2.0
// emit.h — appending instructions with the waits their memory needs.
#ifndef OTRN_TILE_EMIT_H
#define OTRN_TILE_EMIT_H

#include "tile/place.h"

// SBUF, bytes inside a partition: products below, row programs above. The smallest chip has room for both.
#define ROWS_AREA_BEGIN 81920u
#define ROWS_AREA_BYTES 98304u
#define DRAWS_AREA_BEGIN (ROWS_AREA_BEGIN + ROWS_AREA_BYTES) // random numbers, where the chip has the room
#define DRAWS_AREA_MIN 24576u
#define DRAWS_MIN (1 << 19) // numbers of a program that are worth it
#define SBUF_PIECE 1024u // waits between steps are told apart by pieces of this size
#define SBUF_PIECES (ISA_SBUF_BYTES / SBUF_PIECE)

#define STREAMS ISA_STREAMS // queues of collectives
// Queues the compiler uses: several each way for products and for row programs, among which sched_place.c chooses.
enum {
    QUEUE_IN, QUEUE_IN2, QUEUE_IN3, QUEUE_IN4, QUEUE_OUT, QUEUE_OUT2, QUEUE_ROWS_IN, QUEUE_ROWS_IN2, QUEUE_ROWS_OUT, QUEUE_ROWS_OUT2,
    QUEUE_COPY, QUEUE_CAST, QUEUE_COLL, QUEUE_COUNT = QUEUE_COLL + STREAMS
};

// Steps of a lane keep their order; steps of different lanes may go beside each other (sched.c).
typedef enum Lane { LANE_TENSOR, LANE_ROWS, LANE_MOVE, LANE_CAST, LANE_KERNEL, LANE_COLLECTIVE, LANE_DRAWS, LANE_COUNT, LANE_NONE = LANE_COUNT } Lane;
#define REC_READS 4
#define REC_WRITES 3

#define EMIT_REGS 8 // registers of addresses; 0 belongs to control flow
typedef struct Sched Sched;
struct Placer;

typedef struct Meeting { // with the other core, at the end of a round
    Known hbm; // completions of the round's accesses to HBM
    uint32_t task, count;   // in its lane; of its engine's semaphore
    uint32_t epoch;
} Meeting;

// What a step would do, found without recording it (sched.c): what of HBM, and for how long.
typedef struct ProbeTouch {
    uint32_t seg;
    uint64_t lo, hi; // bytes
    bool writes;
} ProbeTouch;
typedef struct Probe {
    VEC(ProbeTouch) touches; // hulls of what instructions that follow each other do alike
    double busy[ENG_COUNT], dma; // ns
    uint64_t insts;
} Probe;

typedef struct Emit {
    Lower *l;
    Compile *c;
    const ChipFile *chip;
    Artifact *art;
    ShapeCode code;
    VEC(uint32_t) code_loc;
    VEC(uint32_t) code_order;           // number + 1 of the task it was recorded in, over all lanes; 0: stays where it is
    VEC(Kern) kerns;
    VEC(ArtLoc) locs;
    VEC(ArtLoop) loops;
    uint32_t loc;                       // of the step being emitted
    uint32_t *loc_of;                   // per op: its entry in locs, 0 = none yet
    uint32_t epoch;                     // grows at every barrier
    uint32_t product_epoch;             // + 1: of the latest product, or of an iteration that runs into the next
    uint32_t next_bank;                 // that products have not used for longest
    uint32_t done[HAZ_SEMS];            // completions so far in this epoch
    uint32_t seen[ISA_SEQS][HAZ_SEMS]; // what each sequencer has waited for
    Heap heap;
    Buf *consts;                        // of the artifact
    Sched *sched;
    struct Placer *placer;
    Lane lane;                  // of the step being recorded
    uint32_t draws_bytes;       // SBUF of programs that make random numbers; 0: there are none, or they share that of other row programs
    bool tiles_apart;           // its tasks may go in any order
    Haz sbuf_haz[SBUF_PIECES];  // what earlier steps still do with each piece of SBUF
    Haz bank_haz[8];            // … and with each PSUM bank
    Haz reg_haz[EMIT_REGS];     // … and with registers 1…
    uint32_t next_reg;
    uint64_t reach, below;      // bytes that registers may add to the HBM address of the next instruction, or take from it
    const BufId *views;         // by number: see emit_addr
    uint32_t view_seg;          // pretended segment of the first
    uint32_t *row_node;         // per value inside a row program: its node
    int part, parts;            // of a step that two cores share (pair.h); parts 0: all of it
    bool shared;                // … and it can be
    Probe *probe;               // instructions go there instead
    uint32_t round, after;      // of the step, where two cores share a program: its round; the meeting that it follows, 0 = none
    Meeting *meetings;          // by round
} Emit;

// sched.c. Instructions of a step are recorded in its lane and placed later, so what they point to must stay. A step with LANE_NONE
// appends its own (emit_append), after everything recorded before.
void sched_init(Emit *e, uint32_t nsegments);
void emit_lane(Emit *e, Lane lane, bool tiles_apart); // of the step that begins; its tasks write no byte that another touches
void emit_task(Emit *e);            // what follows is a tile of its own
// An instruction that reads and writes these parts of SBUF and PSUM. HBM is known by the instruction's own addresses.
void emit_inst(Emit *e, IsaInst in, Haz *const *reads, uint32_t nreads, Haz *const *writes, uint32_t nwrites);
void emit_merge(Emit *e, Haz *into, Haz *from); // when what is recorded before it has been placed
void emit_area(Emit *e, Haz *h, uint32_t at, uint32_t bytes, bool out); // merge with pieces of SBUF, or the other way
// The step uses another lane's memories as well: it comes after all that is recorded there, and what is recorded there later
// comes after what this lane has now. Called at the begin and at the end of such a step.
void emit_join(Emit *e, Lane other);
void emit_meet(Emit *e, uint32_t round); // the cores meet when this one is through with the round's accesses to HBM
void emit_step_end(Emit *e);
void emit_flush(Emit *e);                           // places everything recorded
// The body of a loop is what is placed from the one call to the other. `loop` is its instruction, at `pc`, with a barrier behind it: where
// waits can be found that suit every iteration, the barrier goes before the loop and iterations run into each other.
void emit_body_begin(Emit *e);
bool emit_body_end(Emit *e, uint32_t pc, const IsaInst *loop);
void emit_all(Emit *e, void (*fn)(void *arg), void *arg); // a whole program, by fn
void emit_unweave(Emit *e); // unweave.c: tasks together, of what was placed since the last time
uint32_t emit_append(Emit *e, const IsaInst *in); // as it is; its number
// The part of n units that this core does, [*lo, *hi), where a step is shared; cut at a multiple of `unit`, so that steps over the same
// rows are cut alike. It may be empty.
int64_t emit_middle(int64_t n, int64_t unit); // where two cores cut
void emit_share(Emit *e, int64_t n, int64_t unit, int64_t *lo, int64_t *hi);
void emit_probe(Emit *e, const Step *s, int part, Probe *out); // the part of two; e->shared says whether there is another
Emit *emit_make(Lower *l, const ChipFile *chip);
typedef struct BufList { // temporary buffers by the step where they begin, or end, as linked lists
    BufId *first; // per step
    BufId *next;  // per buffer
} BufList;
BufList emit_bufs(Lower *l, bool by_last);
bool emit_draws(const Emit *e, const Step *s); // random numbers, in a lane and memory of their own
typedef void StepEmit(Emit *e, const Step *s);
typedef bool StepTakes(const Lower *l, const HloOp *op, Why *why); // where it is the lowering's kind of op and does not suit it, why
typedef struct StepRow { // what is the same for all steps of a kind
    const char *name;
    Lane lane;
    bool tiles_apart; // they write no byte that another of them touches
    bool views;       // they read and write HBM by instructions alone, so that an address may have a register
    StepEmit *emit;
    StepTakes *takes; // NULL: it is no lowering of single ops
} StepRow;
extern const StepRow step_rows[];
// HBM address of a buffer. That of a view is in a segment that is none: emit_inst puts its place and register there.
uint64_t emit_addr(const Emit *e, BufId b);
void emit_collective(Emit *e, const Kern *k); // collect.c
int collect_stream(uint16_t op, const HloAttr *attrs);
void hold_operands(Lower *l, const ChipFile *chip, uint32_t cores); // hold.c; cores that share the steps
void hold_nothing(Lower *l);
// Each in the file of its name; casts in move.c.
StepTakes cast_takes, rows_take, nest_takes, dot_takes, depth_takes, conv_takes, index_takes, dynamic_takes, scan_takes, pool_takes, move_takes, transpose_takes;
StepEmit emit_cast, emit_rows, emit_nests, emit_dot, emit_depth, emit_conv, emit_index, emit_dynamic, emit_scan, emit_pool, emit_move, emit_transpose;
bool transpose_by_array(const Emit *e, const Step *s); // transpose.c: transfers cannot
bool depth_suits(const Emit *e, const Step *s); // depth.c: the engines are quick enough
// capacity.c
void capacity_values(Emit *e); // of the artifact: arguments and results
void capacity_check_room(Emit *e, const BufList *begin, const BufList *end); // raises what is far too large before its instructions are made
void capacity_find_live(Emit *e, uint32_t peak_step); // of the artifact: the tensors alive then, largest first
bool capacity_suffices(const Emit *e, double scratch_bytes);
void capacity_check(Emit *e, double scratch_bytes); // raises CAPACITY, with those
void emit_loc(Emit *e, OpId op);            // what follows belongs to this op of the source
// move.c
bool fill_is_transfer(const HloType *t);
void emit_fill_transfer(Emit *e, const Step *s);

#endif
