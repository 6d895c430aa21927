// SPDX-License-Identifier: Apache-2.0
// opt.h — every knob of opentrn in one table.
//
// A row feeds the command line (--name=value), the environment (nothing else in the project calls
// getenv), the C interface (otrn_option), `--help` and `otrn info options`. The command line wins
// over the environment, the environment over the default.
// Columns: enum, name, environment variable (several, A|B: the first that is set), default, kind, values or unit, commands it shows under,
// help. Kinds: S text, H text that is never shown, N whole number >= 0, B on|off, E one of the values separated by '|'.
// Commands: letters as in tools/main.c (c compile, r run, e eval, p prof, P predict, cost and bakeoff, k check, x as, d dis, i info,
// C cache, R reduce, l ls, L launch, t train, g generate, y precision, H health, T top; * all; - library only).
#ifndef OTRN_BASE_OPT_H
#define OTRN_BASE_OPT_H

#include "base/ctx.h"

#define OPT_ROWS(X)                                                                                \
    X(TARGET, "target", "OTRN_TARGET", "trn2", 'S', "trn1|trn2|trn3|FILE", "crpdkxCltgy",               \
      "chip to compile for and to model")                                                          \
    X(INSTANCE, "instance", "OTRN_INSTANCE", "", 'S', "NAME", "rplPt",                               \
      "machine to model: its chip, devices and price; prof: several, NAME,…, in one table; `otrn info instances` lists them") \
    X(PRICE, "price", "OTRN_PRICE", "", 'S', "USD/h", "pPt",                                         \
      "what an hour of the instance costs you, instead of its published price; bakeoff: NAME:USD/h,…")                    \
    X(TOKENS, "tokens", "", "0", 'S', "count", "pP",                                                \
      "tokens (or samples) of one run, of all devices together: tells tokens/s, utilisation and $ per million") \
    X(SAMPLES, "samples", "", "0", 'S', "count", "P",                                               \
      "samples of one run, of all devices together")                                               \
    X(NODES, "nodes", "", "1", 'S', "N", "P", "how many of the instance")                          \
    X(DAYS, "days", "", "", 'S', "N", "P", "of a run: tells its tokens and dollars, with what checkpoints and failures lose") \
    X(MEASURED, "measured", "", "", 'S', "NAME:RATE", "P",                                         \
      "your own measurement on an instance takes its place: NAME:98000tok/s, 12samples/s or 340ms of a step; may be repeated") \
    X(MTBF, "mtbf-hours", "", "4000", 'S', "H", "P", "mean time between failures of one machine")  \
    X(CHECKPOINT_S, "checkpoint-s", "", "60", 'S', "S", "P", "that a checkpoint holds the run up")   \
    X(STARTS, "starts", "", "1", 'S', "N", "P", "of the run: without a cache each compiles")        \
    X(EPOCH, "epoch-tokens", "", "", 'S', "count", "P", "tokens of the data: tells hours and dollars of an epoch") \
    X(MAX_COMM, "max-comm", "", "", 'S', "SHARE", "pPt",                                           \
      "exit status 3 when collectives take more of the step: 25% or 0.25")                         \
    X(TRIPS, "trips", "OTRN_TRIPS", "", 'S', "N|run", "pP",                                         \
      "iterations of loops whose length only a run knows; run: executes it once, with --input, and counts") \
    X(THREADS, "threads", "OTRN_THREADS", "0", 'N', "count", "repcPtgy",                               \
      "host threads; 0 = one per CPU; results do not depend on it")                                \
    X(HOST, "host", "OTRN_HOST", "auto", 'E', "auto|portable|avx2|avx512|avx512bf16|amx", "rtgy",        \
      "host instruction set; results do not depend on it")                                         \
    X(TIMEOUT, "timeout", "OTRN_TIMEOUT", "0", 'N', "seconds", "re",                                \
      "a run that takes longer is ended with an error that names the line it was at; 0 = no limit") \
    X(STOCHASTIC, "stochastic-rounding", "OTRN_STOCHASTIC_ROUNDING", "", 'S', "SEED", "rt",  \
      "results round to bf16, fp16, tf32 and fp8 by chance, from this seed; empty = to nearest even")  \
    X(PLAN, "plan", "OTRN_PLAN", "on", 'E', "on|off|all", "rtgy",                                     \
      "join instructions and spare copies on the host, all: in small programs too; results do not depend on it") \
    X(AUTO_CAST, "auto-cast", "OTRN_AUTO_CAST", "none", 'E', "none|matmult|all", "crpdkCPtg",            \
      "compute f32 products, or all plain f32 operations, in --auto-cast-type")                    \
    X(AUTO_CAST_TYPE, "auto-cast-type", "OTRN_AUTO_CAST_TYPE", "bf16", 'E',                          \
      "bf16|fp16|tf32|fp8_e4m3", "crpdkCPtg", "the type for that")                                      \
    X(CAST_OPS, "cast-ops", "OTRN_CAST_OPS", "", 'S', "NAME=TYPE,…", "crpdkCPtg",                       \
      "another type, or none, for an operation (exponential=none) or a line (train.py:41=bf16)")   \
    X(ROUNDING, "rounding", "OTRN_ROUNDING", "nearest", 'E', "nearest|stochastic", "crpdkCPt",          \
      "how the program rounds to narrower floats; its seed is --stochastic-rounding's")            \
    X(PROFILE, "host-profile", "OTRN_HOST_PROFILE", "off", 'B', "", "r",                           \
      "where the host's time went, by kind of instruction, on stderr after a run")                 \
    X(CACHE, "cache", "OTRN_CACHE", "on", 'E', "on|off", "crpPtgy", "keep and reuse compiled programs")\
    X(CACHE_DIR, "cache-dir", "OTRN_CACHE_DIR", "", 'S', "DIR", "crpCPtgy",                            \
      "where they are kept; empty = $XDG_CACHE_HOME/opentrn or ~/.cache/opentrn")                  \
    X(CACHE_LIMIT, "cache-limit", "OTRN_CACHE_LIMIT", "4096", 'N', "MiB", "crpCPtgy",                  \
      "the longest unused entries go when the cache is larger; 0 = no limit")                      \
    X(STRICT, "strict", "OTRN_STRICT", "off", 'B', "", "crpC",                                     \
      "refuse element types the real chip lacks (f64, complex, 64-bit integers)")                  \
    X(CHIPS, "chips", "OTRN_CHIPS", "", 'S', "DIR", "crpixClPtgy",                                      \
      "folder searched for chip files before the built-in ones")                                   \
    X(VERBOSE, "verbose", "OTRN_VERBOSE", "0", 'N', "level", "crepPtgy",                               \
      "1: cache hits and times on stderr; 2: more")                                                \
    X(INPUT, "input", "", "", 'S', "[NAME=]FILE.npy,…", "rekp",                                    \
      "arguments in order or by name, whole where devices have parts; may be repeated")            \
    X(OUTPUT, "output", "", "", 'S', "DIR", "re", "write result_0.npy, … into this folder")        \
    X(DEFINE, "D", "", "", 'S', "NAME=NUMBER", "crpxdk",                                           \
      "value of a kernel's .param; may be repeated")                                               \
    X(CHECK, "check", "OTRN_CHECK", "off", 'B', "", "r",                                           \
      "also look for reads of memory never written and for races between engines")                 \
    X(NAN, "nan", "OPENTRN_NAN", "off", 'E', "off|on|inf", "rt",                                    \
      "stop where the first NaN (inf: or Inf) is made; operations are not joined then, so that the line is exact") \
    X(OUT, "o", "", "", 'S', "FILE", "cxR", "file to write")                                       \
    X(EMIT, "emit", "", "artifact", 'E', "artifact|mlir|mlirbc", "c",                              \
      "what to write: the artifact, or the program itself as text or bytecode")                    \
    X(LOCS, "locs", "", "off", 'B', "", "c", "text keeps where in the source each op comes from")  \
    X(DUMP, "dump", "", "", 'S', "STAGE,…", "c", "print the program at a stage; --dump=help lists")\
    X(EXPLAIN, "explain", "", "off", 'B', "", "c",                                                \
      "what each source line became, on which engine, what stayed on GpSimd and why, memory")      \
    X(GPSIMD_LIMIT, "gpsimd-limit", "", "10", 'N', "percent", "ck",                                \
      "share of the run on GpSimd above which the verdict is not `supported`")                     \
    X(UNTIL, "passes-until", "OTRN_PASSES_UNTIL", "", 'S', "NAME", "crpdkC",                         \
      "leave out the passes behind this one, but for those a program cannot do without")           \
    X(BISECT, "bisect", "", "off", 'B', "", "R",                                                   \
      "do not shrink: name the pass with which the failure begins to show")                        \
    X(STATS, "stats", "", "off", 'B', "", "c", "counts and times per stage on stderr")             \
    X(LNC, "lnc", "OTRN_LNC", "auto", 'E', "auto|1|2", "crpdkClPtgy",                                      \
      "cores of a device, auto = of the chip's logical cores: two share programs and their HBM; with 2 a kernel runs on each") \
    X(TRACE, "trace", "", "", 'S', "FILE", "p", "write a timeline that Perfetto opens; FILE.gz: compressed") \
    X(TRACE_WINDOW, "trace-window", "", "", 'S', "FROM:TO", "p",                                    \
      "of the timeline only this part, in us; either may be left out")                             \
    X(GROUP, "group", "", "line", 'E', "line|op|scope|layer|none", "p",                             \
      "what takes the time, by source line, operation, jax.named_scope or module, or layer; none: totals alone, which is quicker") \
    X(TOP, "top", "", "0", 'N', "rows", "p", "rows of each table; 0 = as many as fit well")        \
    X(HINTS, "hints", "", "off", 'B', "", "p",                                                     \
      "compile the program in other ways (bf16, two cores, donated arguments) and tell what each gave") \
    X(REPORT, "report", "", "", 'S', "FILE.html", "pPt", "write a page with all of it, plots and tables, for a browser") \
    X(TEST, "test", "", "", 'S', "COMMAND", "R",                                                   \
      "sh command that succeeds while the failure shows; %s stands for the program's file")        \
    X(LIMIT, "limit", "", "20", 'N', "seconds", "R",                                               \
      "a command that takes longer is ended and counts as not showing it; 0 = no limit")           \
    X(DIFF, "diff", "", "off", 'B', "", "p",                                                        \
      "two programs side by side, or one on two targets (--target=A,B)")                           \
    X(JSON, "json", "", "off", 'B', "", "plCPHyT", "machine-readable output")                            \
    X(MODEL, "model", "", "gpt", 'E', "gpt|bert|vit|mlp", "ty", "what to train, when no exported step is named")  \
    X(LAYERS, "layers", "", "", 'S', "count", "ty", "of the model; empty = of a small one")          \
    X(DIM, "dim", "", "", 'S', "count", "ty", "width of the model")                                  \
    X(HEADS, "heads", "", "", 'S', "count", "ty", "of attention; they share the width")              \
    X(SEQ, "seq", "", "", 'S', "tokens", "ty", "length of a sample")                                 \
    X(BATCH, "batch", "", "", 'S', "samples", "ty", "of a step, of all devices together")            \
    X(VOCAB, "vocab", "", "", 'S', "count", "ty", "how many tokens a token file has; of text so many are learnt, 256 = its bytes") \
    X(PATCH, "patch", "", "", 'S', "pixels", "ty", "side of the squares that vit cuts images into")  \
    X(DATA, "data", "", "", 'S', "FILE|DIR", "tyk",                                                       \
      "text, tokens (.npy, .bin), IDX images or a folder of PNG files, a folder in it for each class; empty = opentrn's documents, or digits drawn here") \
    X(STEPS, "steps", "", "", 'S', "count", "tyk", "steps of the whole run; empty = 500, precision: 50")             \
    X(SEED, "seed", "", "0", 'S', "number", "tgyk", "of weights, order of data, samples")             \
    X(TRAIN, "train", "", "off", 'B', "", "k", "PROG is the folder of an exported step: is it good enough in the chip's precisions?") \
    X(SEEDS, "seeds", "", "3", 'N', "count", "yk", "runs of each precision, with seeds --seed, --seed + 1, …") \
    X(RATE, "lr", "", "", 'S', "rate", "ty", "learning rate at its highest; empty = 0.001")          \
    X(WARMUP, "warmup", "", "", 'S', "steps", "ty", "until it is reached; empty = a tenth of the run, at most 100") \
    X(SCHEDULE, "schedule", "", "cosine", 'E', "cosine|linear|constant", "ty", "how it falls from there, to a tenth") \
    X(DECAY, "weight-decay", "", "0.1", 'S', "share", "ty", "AdamW's, of matrices")                  \
    X(CLIP, "clip", "", "1", 'S', "norm", "ty", "largest norm of all gradients together; 0 = any")    \
    X(CHECKPOINT, "checkpoint", "", "", 'S', "DIR|s3://BUCKET/PREFIX", "t", "where checkpoints go; empty = none are written") \
    X(CHECKPOINT_EVERY, "checkpoint-every", "", "100", 'S', "steps", "t", "between them; the last step and Ctrl-C write one too") \
    X(KEEP, "keep", "", "3", 'N', "count", "t", "how many of them stay; 0 = all")                   \
    X(RESUME, "resume", "", "off", 'B', "", "t", "go on from the last good checkpoint, if there is one; bit for bit") \
    X(LOG, "log", "", "", 'S', "FILE", "t", "a line of JSON per step")                              \
    X(TENSORBOARD, "tensorboard", "", "", 'S', "DIR", "t", "event files for TensorBoard")           \
    X(PROMETHEUS, "prometheus", "", "", 'S', "FILE", "t", "numbers of the run in Prometheus' text format, once a second") \
    X(SAMPLE, "sample", "", "", 'S', "bytes", "tg", "text to write at the end; empty = 200 by gpt, generate: 400") \
    X(PROMPT, "prompt", "", "", 'S', "TEXT", "tg", "what the text begins with")                     \
    X(TEMPERATURE, "temperature", "", "0.7", 'S', "number", "tg", "0 = always the likeliest token") \
    X(DISABLE, "disable-pass", "OTRN_DISABLE_PASS", "", 'S', "NAME,…", "crpdkCPtgy", "leave passes out") \
    X(S3_ENDPOINT, "s3-endpoint", "AWS_ENDPOINT_URL_S3|AWS_ENDPOINT_URL", "", 'S', "URL", "-",        \
      "S3 server, for checkpoints at s3://…; empty = the profile's, or Amazon's")                  \
    X(S3_REGION, "s3-region", "AWS_REGION|AWS_DEFAULT_REGION", "", 'S', "NAME", "-", "its region; empty = the profile's, or us-east-1") \
    X(S3_KEY, "s3-key", "AWS_ACCESS_KEY_ID", "", 'H', "WORD", "-", "who asks there; empty = the profile's") \
    X(S3_SECRET, "s3-secret", "AWS_SECRET_ACCESS_KEY", "", 'H', "WORD", "-", "proves it")            \
    X(S3_TOKEN, "s3-token", "AWS_SESSION_TOKEN", "", 'H', "WORD", "-", "of a session, when there is one") \
    X(S3_PROFILE, "s3-profile", "AWS_PROFILE", "default", 'S', "NAME", "-", "section of the two files below") \
    X(S3_CREDENTIALS, "s3-credentials", "AWS_SHARED_CREDENTIALS_FILE", "", 'S', "FILE", "-", "empty = ~/.aws/credentials") \
    X(S3_CONFIG, "s3-config", "AWS_CONFIG_FILE", "", 'S', "FILE", "-", "empty = ~/.aws/config")       \
    X(RUNTIME, "xdg-runtime-dir", "XDG_RUNTIME_DIR", "", 'S', "DIR", "-", "where what lives as long as a session belongs, when set") \
    X(PLATFORM, "platform", "OPENTRN_PLATFORM", "opentrn", 'E', "opentrn|neuron", "-",             \
      "the name JAX sees")                                                                         \
    X(HOME, "home", "HOME", "", 'S', "DIR", "-", "the user's folder, for the default cache folder")  \
    X(XDG_CACHE, "xdg-cache-home", "XDG_CACHE_HOME", "", 'S', "DIR", "-",                           \
      "where caches belong, when set")                                                             \
    X(DEVICES, "devices", "OPENTRN_DEVICES", "0", 'N', "count", "lLt",                             \
      "devices JAX sees, of each process, 0 = the cores of one chip of the target; train: that share each batch, 0 = one") \
    X(FABRIC, "fabric", "OTRN_FABRIC", "auto", 'E', "auto|rings|sockets|tcp|efa", "-",              \
      "how data goes between processes: auto = shared memory inside a host, where allowed each reads the other's "    \
      "memory (rings: never), elsewhere libfabric, or sockets where it is not installed; tcp, efa: that provider of "  \
      "libfabric and nothing else")                                                  \
    X(COLL_TIMEOUT, "coll-timeout", "OTRN_COLL_TIMEOUT", "600", 'N', "seconds", "-",                 \
      "a collective that waits longer for another process fails and tells what each process does; 0 = no limit") \
    X(ROOT, "root", "OTRN_ROOT|NEURON_RT_ROOT_COMM_ID", "", 'S', "HOST:PORT", "H",                  \
      "where the processes of a job meet; the first listens there; empty = by what torchrun, Slurm or mpirun say") \
    X(SECRET, "secret", "OTRN_SECRET", "", 'H', "WORDS", "-",                                       \
      "what all processes of a job know and nobody else; who meets at --root needs it")            \
    X(RANK, "rank", "OTRN_RANK|RANK|SLURM_PROCID|OMPI_COMM_WORLD_RANK|PMI_RANK|NEURON_PJRT_PROCESS_INDEX", "", 'S', "number", "-", \
      "which process of the job this is")                                                          \
    X(WORLD, "world", "OTRN_WORLD|WORLD_SIZE|SLURM_NTASKS|OMPI_COMM_WORLD_SIZE|PMI_SIZE", "", 'S', "count", "-", \
      "processes of the job")                                                                      \
    X(DEVICE_LIST, "device-list", "NEURON_PJRT_PROCESSES_NUM_DEVICES", "", 'S', "count,…", "-",      \
      "devices of each process of the job, which also tells how many there are")                   \
    X(MASTER, "master", "MASTER_ADDR", "", 'S', "HOST", "-", "host of the job's first process, as torchrun says it") \
    X(MASTER_PORT, "master-port", "MASTER_PORT", "", 'S', "number", "-",                            \
      "the port torchrun uses there; JAX's coordinator takes the next, --root the one behind it")  \
    X(NODE_LIST, "node-list", "SLURM_STEP_NODELIST|SLURM_JOB_NODELIST", "", 'S', "NAME[0-3],…", "-", \
      "hosts of a Slurm job; the first is its first process's")                                    \
    X(JOB, "job", "SLURM_JOB_ID|PMIX_NAMESPACE", "", 'S', "NAME", "-", "what tells jobs of Slurm and mpirun apart") \
    X(LOCAL_WORLD, "local-world", "OMPI_COMM_WORLD_LOCAL_SIZE", "", 'S', "count", "-",              \
      "processes of an mpirun job on this host")                                                   \
    X(HEAD, "head", "OMPI_MCA_orte_hnp_uri", "", 'S', "NUMBER;tcp://ADDRESS,…:PORT", "-",            \
      "where mpirun of Open MPI 4 is; its processes meet there, so the first has to be on that host") \
    X(GENERATION, "generation", "OTRN_GENERATION|TORCHELASTIC_RESTART_COUNT", "", 'S', "number", "-", \
      "how often the job was started again, where its store has outlived it")                      \
    X(PROCESSES, "n", "", "1", 'N', "count", "L", "processes; with --hosts on each of them")       \
    X(HOSTS, "hosts", "", "", 'S', "NAME,…", "L", "hosts to start them on; empty = this one")       \
    X(SSH, "ssh", "OTRN_SSH", "ssh", 'S', "COMMAND", "L",                                           \
      "runs a line on another host: COMMAND HOST LINE")                                            \
    X(PORT, "port", "", "0", 'N', "number", "L",                                                    \
      "first of three ports on the first host; 0 = free ones, with --hosts 29400")                 \
    X(RESTARTS, "restarts", "", "0", 'N', "count", "L",                                             \
      "how often the whole job is started again when a process of it fails")                       \
    X(ONCE, "once", "", "off", 'B', "", "T", "print it once, as without a terminal")                  \
    X(PICTURE, "picture", "", "", 'S', "FILE.svg", "H", "write the bandwidths of all pairs as a picture") \
    X(SLOWER, "slower", "", "25", 'N', "percent", "H",                                              \
      "a host or connection so far behind the middle one is a straggler: status 3")                \
    X(DISPATCH, "dispatch", "OPENTRN_DISPATCH", "auto", 'E', "auto|async|inline", "-",             \
      "when JAX's calls return: auto = short runs inside the call, others before they are done")   \
    X(TIMING, "timing", "OPENTRN_TIMING", "on", 'B', "", "-",                                      \
      "remember what ran last, for opentrn.last_run() and opentrn.profile()")                      \
    X(LIBRARY, "library", "OTRN_PJRT_LIBRARY", "", 'S', "FILE", "-",                               \
      "plugin the Python package loads; empty = the tree's build, or the one it ships")

typedef enum OptId {
#define X(e, ...) OPT_##e,
    OPT_ROWS(X)
#undef X
        OPT_COUNT
} OptId;

typedef struct OptRow {
    const char *name, *env, *dflt;
    char kind;
    const char *values, *cmds, *help;
} OptRow;

extern const OptRow opt_rows[OPT_COUNT];

typedef struct Options {
    const char *val[OPT_COUNT];   // never NULL
    const char *from[OPT_COUNT];  // "default", "environment", "command line"
} Options;

#define OPT_NUM_MAX 65536u // largest value of an N option

void opt_init(Ctx *ctx, Options *o); // defaults, then the environment; raises USAGE on a bad value
void opt_set(Ctx *ctx, Options *o, const char *name, const char *value, const char *from);
int opt_find(const char *name, size_t n); // OptId or -1
uint64_t opt_num(const Options *o, OptId id);
bool opt_on(const Options *o, OptId id);
// For "did you mean": of `best` (may be NULL) and `candidate` the one nearer to what was typed; a
// candidate too far off to be a typo is never chosen.
const char *opt_nearer(const char *typed, const char *best, const char *candidate);

#endif
