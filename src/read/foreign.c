// SPDX-License-Identifier: Apache-2.0
// foreign.c — files that people take for programs, named for what they are.
//
// Weights, checkpoints, programs of other compilers and archives would fail in the text reader with a word about
// their first byte. A row knows one kind by its content, never by its name, and says what to do instead. What no row
// knows goes on to the readers.
#include <string.h>

#include "read/read.h"

typedef struct File {
    const uint8_t *at;
    size_t n;
} File;

static bool begins(File f, size_t offset, const char *magic, size_t n) {
    return f.n >= offset + n && !memcmp(f.at + offset, magic, n);
}

// Is the word among the first `within` bytes?
static bool holds(File f, size_t within, const char *word) {
    size_t n = strlen(word), end = f.n < within ? f.n : within;
    for (size_t i = 0; i + n <= end; i++)
        if (f.at[i] == (uint8_t)word[0] && !memcmp(f.at + i, word, n))
            return true;
    return false;
}

static uint64_t number(File f, size_t offset) { // 8 bytes, the lowest first
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | f.at[offset + (size_t)i];
    return v;
}

// --- protocol buffers: enough to tell messages apart by the fields they have ------------------------

static bool varint(File f, size_t *at, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 64 && *at < f.n; shift += 7) {
        uint8_t byte = f.at[(*at)++];
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

// Reads a field at *at. Its number, or 0 where there is no proper one; *inside: its bytes, for a message or text.
static uint32_t field(File f, size_t *at, File *inside) {
    uint64_t tag, value;
    *inside = (File){NULL, 0};
    if (!varint(f, at, &tag) || tag >> 3 == 0 || tag >> 3 > 4096)
        return 0;
    size_t fixed = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
    if ((tag & 7) == 0) {
        if (!varint(f, at, &value))
            return 0;
    } else if ((tag & 7) == 2) {
        if (!varint(f, at, &value) || value > f.n - *at)
            return 0;
        *inside = (File){f.at + *at, (size_t)value};
        *at += (size_t)value;
    } else if (!fixed || fixed > f.n - *at) {
        return 0;
    } else {
        *at += fixed;
    }
    return (uint32_t)(tag >> 3);
}

// Bits of the field numbers up to 31 that the whole file consists of; 0 when it is no message.
static uint32_t fields(File f) {
    uint32_t mask = 0, tag;
    File inside;
    for (size_t at = 0; at < f.n; mask |= tag < 32 ? 1u << tag : 1u)
        if (!(tag = field(f, &at, &inside)))
            return 0;
    return mask;
}

static bool printable(File f) {
    for (size_t i = 0; i < f.n; i++)
        if (f.at[i] < 32 || f.at[i] > 126)
            return false;
    return f.n > 0;
}

// HloModuleProto begins with its name and its entry computation's; HloProto and HloSnapshot wrap one.
static bool is_hlo_proto(File f) {
    for (int depth = 0; depth < 3; depth++) {
        size_t at = 0;
        File first, second;
        if (f.n < 8 || f.at[0] != 0x0a || field(f, &at, &first) != 1)
            return false;
        if (printable(first))
            return at < f.n && f.at[at] == 0x12 && field(f, &at, &second) == 2 && printable(second) && at < f.n &&
                   f.at[at] == 0x1a;
        if (first.n < f.n / 2)
            return false;
        f = first;
    }
    return false;
}

#define FIELD(i) (1u << (i))
static bool is_onnx(File f) { return begins(f, 0, "\x08", 1) && (fields(f) & (FIELD(1) | FIELD(7))) == (FIELD(1) | FIELD(7)); }
static bool is_saved_model(File f) { return begins(f, 0, "\x08\x01\x12", 3) && fields(f) == (FIELD(1) | FIELD(2)); }

// A frozen graph: nodes, each with a name and an operation.
static bool is_graph_def(File f) {
    size_t at = 0, inner = 0;
    File node, name, op;
    return begins(f, 0, "\x0a", 1) && field(f, &at, &node) == 1 && field(node, &inner, &name) == 1 && printable(name) &&
           field(node, &inner, &op) == 2 && printable(op) && fields(f) && !(fields(f) & ~(FIELD(1) | FIELD(2) | FIELD(3) | FIELD(4)));
}

// --- by their first bytes ---------------------------------------------------------------------------

static bool is_safetensors(File f) {
    uint64_t header = f.n >= 10 ? number(f, 0) : 0;
    return header >= 2 && header <= f.n - 8 && f.at[8] == '{' && (f.at[9] == '"' || f.at[9] == '}');
}

// A header of 1024 bytes that tells its own size and that of the rest.
static bool is_neff(File f) {
    return f.n > 1024 && number(f, 8) == 1024 && number(f, 16) > 0 && number(f, 16) <= f.n - 1024;
}

#define ZIP_NAMES 65536 // where the names of an archive are, at its end
static bool zip_holds(File f, const char *word) {
    File names = f.n > ZIP_NAMES ? (File){f.at + f.n - ZIP_NAMES, ZIP_NAMES} : f;
    return begins(f, 0, "PK\3\4", 4) && holds(names, names.n, word);
}
static bool is_torch_program(File f) { return zip_holds(f, "archive_format") || zip_holds(f, "/code/__torch__"); }
static bool is_torch(File f) { return zip_holds(f, "data.pkl"); }
static bool is_keras(File f) { return zip_holds(f, "model.weights.h5"); }
static bool is_npz(File f) { return zip_holds(f, ".npy"); }
static bool is_zip(File f) { return begins(f, 0, "PK\3\4", 4); }
static bool is_pickle(File f) { return f.n > 2 && f.at[0] == 0x80 && f.at[1] >= 2 && f.at[1] <= 5; }
static bool is_hdf5(File f) { return begins(f, 0, "\x89HDF\r\n\x1a\n", 8); }
static bool is_gguf(File f) { return begins(f, 0, "GGUF", 4); }
static bool is_npy(File f) { return begins(f, 0, "\x93NUMPY", 6); }
static bool is_tflite(File f) { return begins(f, 4, "TFL3", 4); }
static bool is_llvm(File f) { return begins(f, 0, "BC\xc0\xde", 4); }
static bool is_elf(File f) { return begins(f, 0, "\x7f" "ELF", 4); }
static bool is_tar(File f) { return begins(f, 257, "ustar", 5); }
static bool is_gzip(File f) { return begins(f, 0, "\x1f\x8b", 2); }
static bool is_xz(File f) { return begins(f, 0, "\xfd" "7zXZ", 5); }
static bool is_zstd(File f) { return begins(f, 0, "\x28\xb5\x2f\xfd", 4); }
static bool is_bzip2(File f) { return begins(f, 0, "BZh", 3); }
// Exported.serialize() has the bytecode inside, behind a table of offsets.
static bool is_jax_export(File f) { return f.n > 64 && f.at[3] == 0 && holds(f, 1 << 16, "ML\xefR"); }

// --- text: behind empty lines and comments ----------------------------------------------------------

static File text_start(File f) {
    while (f.n) {
        size_t line = 0;
        while (line < f.n && f.at[line] != '\n')
            line++;
        bool blank = *f.at == ' ' || *f.at == '\t' || *f.at == '\r' || *f.at == '\n';
        bool comment = begins(f, 0, "//", 2) || begins(f, 0, "# ", 2) || begins(f, 0, "#!", 2);
        if (!blank && !comment)
            break;
        size_t skip = blank ? 1 : line < f.n ? line + 1 : line;
        f.at += skip, f.n -= skip;
    }
    return f;
}
static bool text_begins(File f, const char *word) { return begins(text_start(f), 0, word, strlen(word)); }
static bool is_hlo_text(File f) { return text_begins(f, "HloModule "); }
static bool is_jaxpr(File f) { return text_begins(f, "{ lambda"); }
static bool is_json(File f) { return text_begins(f, "{\"") || text_begins(f, "{\n"); }
static bool is_python(File f) { return text_begins(f, "import ") || text_begins(f, "from ") || text_begins(f, "\"\"\""); }
static bool is_empty(File f) { return f.n == 0; }

#define AS_STABLEHLO "in JAX jit(f).lower(*args).as_text() is the program as StableHLO, in PyTorch opentrn.torch.export_step writes it"
#define WEIGHTS "weights are arguments: --input=FILE.npy gives them to a program; " AS_STABLEHLO

static const struct {
    bool (*is)(File f);
    const char *what, *todo;
} kinds[] = {
    {is_empty, "an empty file", AS_STABLEHLO},
    {is_jax_export, "a serialised jax.export.Exported", "jax.export.deserialize(bytes).mlir_module() is the program in it"},
    {is_jaxpr, "a jaxpr", AS_STABLEHLO},
    {is_neff, "a NEFF, a program compiled by neuronx-cc", "opentrn compiles the program it was made from: " AS_STABLEHLO},
    {is_saved_model, "a TensorFlow SavedModel", "docs/from-tf-keras.md takes a tf.keras model over; " AS_STABLEHLO},
    {is_onnx, "an ONNX model", "export it from where it was made: " AS_STABLEHLO},
    {is_graph_def, "a TensorFlow graph (GraphDef)", "docs/from-tf-keras.md takes a tf.keras model over; " AS_STABLEHLO},
    {is_tflite, "a TensorFlow Lite model", AS_STABLEHLO},
    {is_safetensors, "a file of weights (safetensors), not a program", WEIGHTS},
    {is_torch_program, "a PyTorch program (torch.export or TorchScript)", "opentrn.torch.export_step(model, opt, batch, folder) writes StableHLO"},
    {is_torch, "a PyTorch checkpoint (torch.save), not a program", WEIGHTS},
    {is_keras, "a saved Keras model", "keras.saving.load_model loads it; opentrn.tensorflow.attach(model) or KERAS_BACKEND=jax runs it: docs/from-tf-keras.md"},
    {is_npz, "an archive of arrays (.npz), not a program", "numpy.save each as .npy and give it with --input"},
    {is_npy, "an array (.npy), not a program", "arrays are arguments: --input=FILE.npy"},
    {is_zip, "a zip archive", "unpack it and name the program in it"},
    {is_pickle, "a Python pickle, perhaps a checkpoint, not a program", WEIGHTS},
    {is_hdf5, "an HDF5 file, perhaps Keras weights, not a program", WEIGHTS},
    {is_gguf, "a file of weights (GGUF), not a program", WEIGHTS},
    {is_llvm, "LLVM bitcode", AS_STABLEHLO},
    {is_elf, "a program or library of the host", AS_STABLEHLO},
    {is_tar, "a tar archive", "unpack it and name the program in it"},
    {is_gzip, "compressed with gzip", "gunzip it first"},
    {is_xz, "compressed with xz", "unxz it first"},
    {is_zstd, "compressed with zstd", "unzstd it first"},
    {is_bzip2, "compressed with bzip2", "bunzip2 it first"},
    {is_json, "JSON, not a program", AS_STABLEHLO},
    {is_python, "Python, not StableHLO", "run it: JAX_PLATFORMS=opentrn,cpu python FILE; " AS_STABLEHLO},
};

bool read_is_xla(const void *bytes, size_t size) { return is_hlo_proto((File){bytes, size}); }

bool read_is_xla_text(const void *bytes, size_t size) { return is_hlo_text((File){bytes, size}); }

void read_foreign(Ctx *ctx, const char *name, const void *bytes, size_t size) {
    File f = {bytes, size};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].is(f)) {
            ctx_hint(ctx, "%s", kinds[i].todo);
            ctx_fail(ctx, OTRN_PARSE, (Place){.file = name}, "this is %s", kinds[i].what);
        }
}
