// SPDX-License-Identifier: Apache-2.0
// level_body.h — the table of one host level. GP_LEVEL names it, GP_ISA is 0 portable, 1 AVX2,
// 2 AVX-512; the includer has set the target.
#include "chip/host/vmath_body.h"
#include "chip/host/gp_body_int.h"
#include "chip/host/gp_body_float.h"
#include "chip/host/vmath_f64_body.h"
#include "chip/host/gp_body_conv.h"
#include "chip/host/gp_body_bf16.h"
#include "chip/host/gp_body_reduce.h"
#include "chip/host/engine_body.h"

const GpLevel GP_LEVEL = {
    .lane = {[LC_F32] = {FLOAT_ROWS(f32), MATH_ROWS(f32), ELEM_ROWS(f32)},
             [LC_F64] = {FLOAT_ROWS(f64), MATH_ROWS(f64), ELEM_ROWS(f64)},
             [LC_I8] = {INT_ROWS(i8)},
             [LC_I16] = {INT_ROWS(i16)},
             [LC_I32] = {INT_ROWS(i32)},
             [LC_I64] = {INT_ROWS(i64)},
             [LC_U8] = {INT_ROWS(u8)},
             [LC_U16] = {INT_ROWS(u16)},
             [LC_U32] = {INT_ROWS(u32)},
             [LC_U64] = {INT_ROWS(u64)},
             [LC_BOOL] = {BOOL_ROWS},
             [LC_BF16] = {BF16_ROWS}},
    .select = {lane_select_1, lane_select_2, lane_select_4, lane_select_8, lane_select_16},
    .turn = turn_u32,
    .widen = {WIDEN_ROWS(widen)},
    .narrow = {WIDEN_ROWS(narrow)},
    .conv = {[LC_I8] = CONV_INT_ROW(i8),
             [LC_I16] = CONV_INT_ROW(i16),
             [LC_I32] = CONV_INT_ROW(i32),
             [LC_I64] = CONV_INT_ROW(i64),
             [LC_U8] = CONV_INT_ROW(u8),
             [LC_U16] = CONV_INT_ROW(u16),
             [LC_U32] = CONV_INT_ROW(u32),
             [LC_U64] = CONV_INT_ROW(u64),
             [LC_BOOL] = CONV_INT_ROW(bool),
             [LC_F32] = CONV_FLOAT_ROW(f32),
             [LC_F64] = CONV_FLOAT_ROW(f64)},
    .to_odd = {[LC_F64] = odd_from_f64,
               [LC_I32] = odd_from_i32,
               [LC_U32] = odd_from_u32,
               [LC_I64] = odd_from_i64,
               [LC_U64] = odd_from_u64},
    .run = {REDUCE_ROWS(run)},
    .rows = {REDUCE_ROWS(rows)},
    .scan = {REDUCE_ROWS(scan)},
    .mac = {[LC_F32] = mac_f32,
            [LC_F64] = mac_f64,
            [LC_I8] = mac_u8,
            [LC_U8] = mac_u8,
            [LC_I16] = mac_u16,
            [LC_U16] = mac_u16,
            [LC_I32] = mac_u32,
            [LC_U32] = mac_u32,
            [LC_I64] = mac_u64,
            [LC_U64] = mac_u64},
    .quiet = {[LC_F32] = quiet_f32, [LC_F64] = quiet_f64, [LC_C64] = quiet_c64, [LC_C128] = quiet_c128, [LC_BF16] = quiet_bf16},
    .vmath = &vmath_table,
    .eng = &eng_table,
};
