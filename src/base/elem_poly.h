// SPDX-License-Identifier: Apache-2.0
// elem_poly.h — polynomials of elem_body.h, lowest degree first. Written by scripts/elem_fit.py.
//
// Beside each: the function it stands for, the interval, the relative error before rounding to double.
#ifndef OTRN_BASE_ELEM_POLY_H
#define OTRN_BASE_ELEM_POLY_H

#include <stdint.h>

// (e^r - 1 - r) / r^2: [-0.35004, 0.35004], 2^-58.1
static const double ELEM_EXP[] = {
    0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5,
    0x1.111111110ff87p-7, 0x1.6c16c16c16212p-10, 0x1.a01a01aca0134p-13,
    0x1.a01a01a741b3cp-16, 0x1.71ddffef9e7b1p-19, 0x1.27e4da1a3bf04p-22,
    0x1.af52906239de4p-26, 0x1.1f75aba0b1e2ep-29,
};

// (atanh(s) / s - 1) / z, z = s^2: [0, 0.0295], 2^-58.2
static const double ELEM_LOG[] = {
    0x1.5555555555555p-2, 0x1.9999999999a3ap-3, 0x1.249249247670ap-3,
    0x1.c71c7201fc0e6p-4, 0x1.745cf8c09a9d4p-4, 0x1.3b1c43c68eb6dp-4,
    0x1.0fbd140544b63p-4, 0x1.0c135adcf3011p-4,
};

// (atanh(s) / s - 1 - z / 3) / z^2: [0, 0.0295], 2^-64.8
static const double ELEM_LOG5[] = {
    0x1.999999999999ap-3, 0x1.2492492492491p-3, 0x1.c71c71c71cffap-4,
    0x1.745d174510f8dp-4, 0x1.3b13b1bdcfb31p-4, 0x1.1110df430665dp-4,
    0x1.e1f81e418e626p-5, 0x1.ac476873b3260p-5, 0x1.b8f089728de3fp-5,
};

// (sin(r) / r - 1) / z, z = r^2: [0, 0.6175], 2^-63.6
static const double ELEM_SIN[] = {
    -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a01992fp-13,
    0x1.71de3a545f74cp-19, -0x1.ae645410cfd07p-26, 0x1.61217d7e3619cp-33,
    -0x1.ab16e9f2b693ep-41,
};

// (cos(r) - 1 + z / 2) / z^2: [0, 0.6175], 2^-65.8
static const double ELEM_COS[] = {
    0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d06p-16,
    -0x1.27e4fb771255dp-22, 0x1.1eed8deab8936p-29, -0x1.9394b8ab6c9b1p-37,
    0x1.ab778ac7ad240p-45,
};

// (tanh(x) / x - 1) / z: [0, 0.4], 2^-60.6
static const double ELEM_TANH[] = {
    -0x1.5555555555555p-2, 0x1.111111111110bp-3, -0x1.ba1ba1ba1ad31p-5,
    0x1.664f488267df6p-6, -0x1.226e354a60bf0p-7, 0x1.d6d3cb810658bp-9,
    -0x1.7da2ed6f5432fp-10, 0x1.35513a3a45c34p-11, -0x1.f4ef7b3a123dap-13,
    0x1.92898a50da2bdp-14, -0x1.360c1e0545dd6p-15, 0x1.95a10856ec71dp-17,
    -0x1.402fe1886cc94p-19,
};

// (sinh(x) / x - 1) / z: [0, 1], 2^-58.7
static const double ELEM_SINH[] = {
    0x1.5555555555555p-3, 0x1.11111111110fdp-7, 0x1.a01a01a01ee70p-13,
    0x1.71de3a4e14f40p-19, 0x1.ae6460fae3728p-26, 0x1.611cb330c1fe8p-33,
    0x1.b41232cf9950fp-41,
};

// (asin(x) / x - 1) / z: [0, 0.25], 2^-57.4
static const double ELEM_ASIN[] = {
    0x1.5555555555555p-3, 0x1.3333333333388p-4, 0x1.6db6db6dac1e0p-5,
    0x1.f1c71c7a52ba3p-6, 0x1.6e8ba123e494cp-6, 0x1.1c4efce23019fp-6,
    0x1.c990ad3d8fdcap-7, 0x1.7b027ee1dd585p-7, 0x1.3b49de7121487p-7,
    0x1.31622469ce5adp-7, 0x1.8f193743418ffp-9, 0x1.406192d124629p-6,
    -0x1.3b416bb7d9257p-6, 0x1.e529c6fce9bb4p-6,
};

// (atan(x) / x - 1) / z: [0, 0.1717], 2^-58.0
static const double ELEM_ATAN[] = {
    -0x1.5555555555555p-2, 0x1.9999999999953p-3, -0x1.249249248d768p-3,
    0x1.c71c71c2fe5d9p-4, -0x1.745d165cb83aap-4, 0x1.3b1392b641b06p-4,
    -0x1.110e858a72e28p-4, 0x1.e199da4156fd9p-5, -0x1.ac78ec6b8cb98p-5,
    0x1.74d64aa665b0ap-5, -0x1.1b2058fb5da30p-5, 0x1.0aa87c56e3eb5p-6,
};

// (atanh(x) / x - 1) / z: [0, 0.25], 2^-59.5
static const double ELEM_ATANH[] = {
    0x1.5555555555555p-2, 0x1.9999999999982p-3, 0x1.249249249409cp-3,
    0x1.c71c71c58156bp-4, 0x1.745d17a833b94p-4, 0x1.3b13a3184d90ap-4,
    0x1.1112632e765f2p-4, 0x1.e1b6c1f3ca95dp-5, 0x1.b116e91f2dcfep-5,
    0x1.76524ce0b6671p-5, 0x1.bff5d5842ce7fp-5, -0x1.7b097a148d046p-8,
    0x1.4f3162758726ep-3, -0x1.79de6d69a866cp-3, 0x1.cff32677aa2f2p-3,
};

// (asinh(x) / x - 1) / z: [0, 0.25], 2^-58.0
static const double ELEM_ASINH[] = {
    -0x1.5555555555555p-3, 0x1.33333333332fap-4, -0x1.6db6db6db086ep-5,
    0x1.f1c71c6d66156p-6, -0x1.6e8ba21ea4fe4p-6, 0x1.1c4eaf29403b6p-6,
    -0x1.c9969396f4545p-7, 0x1.7a633fba31150p-7, -0x1.3eb1386278c61p-7,
    0x1.0c1eacb8f71b5p-7, -0x1.a851c6e415a26p-8, 0x1.0f3620d560e0dp-8,
    -0x1.88e92bd4ca98ep-10,
};

// (erf(x) / x - 2 / sqrt(pi)) / z: [0, 1], 2^-59.0
static const double ELEM_ERF[] = {
    -0x1.812746b0379e7p-2, 0x1.ce2f21a042bd7p-4, -0x1.b82ce312882f8p-6,
    0x1.565bcd0e434bbp-8, -0x1.c02db3f4735cbp-11, 0x1.f9a324ddf0f34p-14,
    -0x1.f4d21efdafc7dp-17, 0x1.b9e2333703249p-20, -0x1.5f39372686202p-23,
    0x1.f8d476ab1a455p-27, -0x1.3c1e91b012003p-30, 0x1.0f8a27a51ad26p-34,
};

// (1 + 2x) e^(x^2) erfc(x), t = (x - 3.75) / (x + 3.75): [-0.78571, 0.76415], 2^-61.0
static const double ELEM_ERFCX[] = {
    0x1.3ccda0b5d5dc2p+0, -0x1.1f367683f89a7p-3, 0x1.d5f2948159ceap-9,
    0x1.510169d0967ccp-4, -0x1.bda9309a2884dp-4, 0x1.7a14188a9a4f2p-4,
    -0x1.e0d0fa6e00ea7p-5, 0x1.d0b0037d98effp-6, -0x1.3f603c33ec54fp-7,
    0x1.cc3a0e4803a34p-10, 0x1.33fb250394dffp-12, -0x1.303fa1cf02327p-12,
    0x1.b1441c769472fp-15, 0x1.778b61cd530a5p-16, -0x1.800507a6f4fafp-17,
    -0x1.0560a9b8ca010p-20, 0x1.d65b3187e1c7cp-20, -0x1.e5d532c577beep-25,
    -0x1.15a5263c4c9e3p-22, 0x1.7c791f2fc1d30p-26, 0x1.43430d2064249p-25,
    -0x1.8351eba22e264p-29, -0x1.154488430c42cp-28,
};

// erf_inv(x) / x, w = -log(1 - x^2) below 5: [0, 5], 2^-27.2
static const double ELEM_ERFINV[] = {
    0x1.c5bf89108eb04p-1, 0x1.db2a01644bc5ap-3, 0x1.7a716b3c956dfp-7,
    -0x1.3216adaa204fep-9, -0x1.095f5cec24910p-13, 0x1.71821645ef351p-15,
    0x1.168bd9f76a2bdp-18, -0x1.0d8bad835bc04p-19, 0x1.e1b098062b061p-23,
    -0x1.32e60d3c53520p-27,
};

// the same over s = sqrt(w) from 2.2: [2.2, 6.1], 2^-25.7
static const double ELEM_ERFINV_TAIL[] = {
    -0x1.1123f6d2d4d68p+3, 0x1.05fdfa5467938p+5, -0x1.9638eb4501c08p+5,
    0x1.7866c7fc36863p+5, -0x1.ca6a31fc61f37p+4, 0x1.8678dbc09ab3bp+3,
    -0x1.e01169bd90013p+1, 0x1.aef9943a97167p-1, -0x1.190146df8b06fp-3,
    0x1.032035bbf781ap-6, -0x1.3bfcd298b8260p-10, 0x1.a28f633227eb9p-15,
    -0x1.2476b35fdd5e3p-25, -0x1.92b1cf168682dp-24, 0x1.9a51d59049150p-29,
};

// lgamma(2 + t) / t: [-0.5, 0.5], 2^-58.5
static const double ELEM_LGAMMA[] = {
    0x1.b0ee6072093cep-2, 0x1.4a34cc4a60fa7p-2, -0x1.13e001a557607p-4,
    0x1.51322ac7d7fd2p-6, -0x1.e404fc218ed43p-8, 0x1.7add6eae5b8fdp-9,
    -0x1.38ac5c2c93e0ep-10, 0x1.0b36af3424c50p-11, -0x1.d3fd4bdb7603ep-13,
    0x1.a127dd231f4b2p-14, -0x1.78de85cb34f0cp-15, 0x1.5806d7786fbc2p-16,
    -0x1.3cb5f68270feep-17, 0x1.2640a5e8ab73ep-18, -0x1.1253c6f56f179p-19,
    0x1.edf317afe0c72p-21, -0x1.d06f6440239bap-22, 0x1.2b4bb069ee6a9p-22,
    -0x1.1bde7c1257c7ap-23,
};

// 2 / pi after the point, 1280 bits.
static const uint64_t ELEM_TWO_OVER_PI[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

#endif
