// SPDX-License-Identifier: Apache-2.0
// elem.c — the functions of elem_body.h, one value per call.
#include "base/elem.h"

#include "base/elem_body.h"

#define X(name)                                                                                    \
    double elem_##name(double x) { return e_result(e_##name(x)); }
ELEM_ONE_ROWS(X)
#undef X
#define X(name)                                                                                    \
    double elem_##name(double x) { return e_result(e_##name##_of(e_turn_any(x), x)); }
ELEM_TURN_ROWS(X)
#undef X
#define X(name)                                                                                    \
    double elem_##name(double a, double b) { return e_result(e_##name(a, b)); }
ELEM_TWO_ROWS(X)
#undef X

float elem_cosh_f32(float x) { return (float)e_result(e_cosh_f32(x)); }
