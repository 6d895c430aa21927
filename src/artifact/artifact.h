// SPDX-License-Identifier: Apache-2.0
// artifact.h — a compiled program: what the chip executes and the clock prices.
//
// The layout of the file is spec/artifact.md; every section carries a checksum, every index is
// checked on load, so that what artifact_load returns can be executed without further tests.
#ifndef OTRN_ARTIFACT_ARTIFACT_H
#define OTRN_ARTIFACT_ARTIFACT_H

#include "isa/check.h"
#include "isa/kern.h"
#include "isa/shape.h"

typedef struct ArtValue { // an argument or a result
    uint8_t dtype, rank;
    int64_t dims[OTRN_MAX_RANK];
    uint64_t bytes;
    const char *name;   // "args[0]['w']" as the front end called it, or ""
    int32_t alias;      // result: argument whose memory it takes, or -1; argument: -1
    uint8_t donated;    // argument: may be consumed
    uint8_t memory;     // ART_DEVICE, ART_PINNED_HOST: where the front end keeps it
    const char *sharding; // how it lies on the devices (spmd/shard.h), NULL or "": each has all of it
} ArtValue;
enum { ART_DEVICE, ART_PINNED_HOST, ART_MEMORIES };

typedef struct ArtLoc { // where an instruction came from in the user's program
    const char *file, *name; // "" when unknown
    uint32_t line, col;
    uint16_t op; // HloOpcode it was lowered from; HLO_NONE for control
} ArtLoc;

#define ART_SELDOM UINT64_MAX // trips of a way that programs do not take as a rule: a run may, prices leave it out
typedef struct ArtLoop { // instructions [begin, end) run `trips` times; 0 = not known
    uint32_t begin, end;
    uint64_t trips;
} ArtLoop;

typedef struct ArtLive { // a tensor live at the memory peak
    uint64_t bytes;
    uint32_t loc;
} ArtLive;

enum { ART_STOCHASTIC = 1 }; // results round to narrower floats by chance

typedef struct Artifact {
    const char *name, *target, *producer; // producer: compiler version
    const char *precision; // what the compiler was told about types, as text; "" = nothing
    uint32_t flags;      // ART_STOCHASTIC
    uint32_t partitions; // devices it runs on together; 0 and 1 are the same
    uint32_t cores;      // 2: for a logical core of two, each with a program of its own; else 0
    // The second core's program. It shares everything with this one but code, code_loc and loops; its own
    // peer is NULL.
    struct Artifact *peer; // with one instruction, `halt`: the first does it all (artifact_is_shared)
    uint32_t nargs, nresults;
    ArtValue *args, *results;
    uint64_t scratch_bytes;
    uint64_t const_bytes;
    const uint8_t *consts;
    uint32_t ncode;
    IsaInst *code;           // or NULL: the shapes tell (artifact_expand)
    const IsaShapes *shapes; // of code as it is, or NULL: who changes code forgets them
    uint32_t *code_loc; // per instruction, index into locs
    uint32_t nkerns;
    Kern *kerns;
    uint32_t nlocs;
    ArtLoc *locs; // slot 0 is "unknown"
    uint32_t nloops;
    ArtLoop *loops; // outer before inner
    uint32_t nlive;
    ArtLive *live;
    // What it was compiled from, so that it can be compiled for another chip or otherwise (rt/again.c). An artifact made
    // of text has none.
    const uint8_t *program; // StableHLO, as bytecode where that can tell it; NULL: none
    uint64_t program_bytes;
    const char *options; // those that decided its code, a line NAME=VALUE each; "" or NULL: all had their defaults
    uint64_t chip_hash;  // of the chip file's values
} Artifact;

#define ARTIFACT_MAGIC "OTRNART"
#define ARTIFACT_VERSION 5

#define ART_LOOP_DEPTH_MAX 64

// Makes the code of `second` the program of the second core; everything else must be in place.
void artifact_pair(Arena *a, Artifact *art, const Artifact *second);
// The compiler leaves its code as shapes and records, which take a tenth of the memory: fills `code`.
void artifact_expand(Arena *a, Artifact *art);
// Two cores have something to do.
static inline bool artifact_is_shared(const Artifact *art) { return art->peer && art->peer->ncode > 1; }
// An instruction, less its wait counts and where its addresses point.
static inline const IsaInst *artifact_shape(const Artifact *art, uint32_t pc) {
    return art->shapes ? shape_inst(art->shapes, pc) : &art->code[pc];
}
bool artifact_is(const void *bytes, size_t size);
bool artifact_calls_host(const Artifact *art); // functions of the process that made it: it cannot run in another
void artifact_save(const Artifact *art, Buf *out);
// Raises PARSE or VERSION. The bytes must stay as long as what it returns. Nothing may be done with what it returns before
// artifact_verify_for. The pool, which may be NULL, helps.
Artifact *artifact_read(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size, Pool *pool);
// Reads and verifies.
Artifact *artifact_load(Ctx *ctx, Arena *a, const char *name, const void *bytes, size_t size);
// Everything an instruction may not do, on the largest chip: isa/check.h for each, operands inside
// their memories for every value a loop counter takes, segments and kernels in range, jumps and loops
// well formed, waits that some earlier instruction can satisfy. Raises VERIFY naming instruction
// number and operand. Called by load and, in debug builds, before save.
void artifact_verify(Ctx *ctx, const Artifact *art, const char *name);
// The same for one chip, its generation and its memories; what passes passes artifact_verify too.
void artifact_verify_for(Ctx *ctx, const Artifact *art, const char *name, const IsaChip *chip, Pool *pool);

// What the chip has to look at while it runs, per instruction: bits ART_DYN_….
enum {
    ART_DYN_ADDR = 1, // a register that is no counter of known bounds stands in an address
    ART_DYN_SEMS = 2, // waits for or signals one of the program's own semaphores
};
uint8_t *artifact_dynamic(Arena *a, const Artifact *art); // of a verified artifact
// Why an operand is wrong when its register terms add up to `terms` bytes; NULL when it is not.
const char *artifact_access_fault(const Artifact *art, const IsaInst *in, const IsaAccess *access,
                                  int64_t terms, char why[ISA_WHY]);
uint8_t *artifact_const_dup(Arena *a, const void *bytes, size_t n); // aligned for host kernels
// Bytes of an HBM segment; 0 with *ok false when there is no such segment.
uint64_t artifact_seg_bytes(const Artifact *art, uint32_t seg, bool *ok);
bool artifact_seg_writable(const Artifact *art, uint32_t seg); // constants are not, arguments only when donated
// The loops by begin, outer before inner: as files have them.
const ArtLoop *artifact_loops_sorted(const Artifact *art, Arena *a);
// Text: arguments, kernels, constants and code; inverses of each other. What it was compiled from is left out: whoever
// changes the text would have code that is not the program's any more.
void artifact_print(const Artifact *art, Buf *out);
Artifact *artifact_parse(Ctx *ctx, Arena *a, const char *name, const char *text, size_t size);
// The same with values for the text's parameters, "M=512,N=3" or NULL.
Artifact *artifact_assemble(Ctx *ctx, Arena *a, const char *name, const char *text, size_t size,
                            const char *defs);
// Adds the waits that the memory its instructions touch asks for (artifact_sync.c); may insert `wait`s.
void artifact_sync(Ctx *ctx, Arena *a, Artifact *art, const char *name);

#endif
