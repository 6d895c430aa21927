// SPDX-License-Identifier: Apache-2.0
// model.h — models that need no framework: their sizes, parameters, training steps and forward passes.
//
// A model is built as a small graph (graph.h), its gradients by reverse mode, the update by AdamW; what leaves is a Step
// (step.h), the same thing that is exported from JAX and PyTorch.
#ifndef OTRN_TRAIN_MODEL_H
#define OTRN_TRAIN_MODEL_H

#include "train/step.h"

typedef enum ModelKind { MODEL_GPT, MODEL_BERT, MODEL_VIT, MODEL_MLP, MODEL_STEP, MODEL_KINDS } ModelKind; // STEP: from a folder
extern const char *const model_names[MODEL_KINDS];

// One row per size: field, name in manifests.
#define MODEL_SIZES(X)                                                                             \
    X(layers) X(dim) X(heads) X(seq) X(batch) X(vocab) X(height) X(width) X(patch)
typedef struct Model {
    ModelKind kind;
#define X(field) int64_t field;
    MODEL_SIZES(X) // vocab: tokens, or classes of images
#undef X
} Model;

typedef struct Adam {
    double beta1, beta2, epsilon, decay, clip; // clip: largest norm of all gradients together; 0: any
} Adam;
#define ADAM_USUAL ((Adam){0.9, 0.95, 1e-8, 0.1, 1.0})

// One step over so many devices, each with its share of the batch. Raises USAGE with what to change.
// real: DT_F32, or DT_F64 to hold others against.
void model_step(Ctx *ctx, Arena *a, const Model *m, const Adam *adam, int64_t devices, int real, Step *out);
// Forward alone, of one sample: parameters and tokens [1,seq] in, logits [seq,vocab] out. Of language models.
void model_forward(Ctx *ctx, Arena *a, const Model *m, Step *out);

#endif
