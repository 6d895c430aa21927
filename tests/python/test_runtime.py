# SPDX-License-Identifier: Apache-2.0
"""The C interface through ctypes, call by call."""

import ctypes

import pytest

from opentrn import _runtime

PROGRAM = b"""
func.func public @main(%a: tensor<2x3xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<3xi64>)
    -> (tensor<3xi64>, tensor<2x3xf32>) {
  %0 = stablehlo.add %a, %a : tensor<2x3xf32>
  %1 = stablehlo.add %b, %b : tensor<3xi64>
  return %1, %0 : tensor<3xi64>, tensor<2x3xf32>
}
"""


def _floats(*values):
    return (ctypes.c_float * len(values))(*values)


def _memory(values):
    return ctypes.addressof(values), ctypes.sizeof(values)


def test_compile_and_run_in_place():
    exe = _runtime.default_environment().compile(PROGRAM, "runtime test")
    assert exe.arg_types() == [("f32", (2, 3)), ("i64", (3,))]
    assert exe.result_types() == [("i64", (3,)), ("f32", (2, 3))]
    assert exe.aliases() == [-1, 0]
    a, b = _floats(1, 2, 3, 4, 5, 6), (ctypes.c_int64 * 3)(7, 8, 9)
    out = (ctypes.c_int64 * 3)()
    exe.run([_memory(a), _memory(b)], [_memory(out), _memory(a)])
    assert list(a) == [2, 4, 6, 8, 10, 12]
    assert list(out) == [14, 16, 18]


def test_wrong_memory_is_refused():
    exe = _runtime.default_environment().compile(PROGRAM, "runtime test")
    a, b, out = _floats(1, 2, 3, 4, 5, 6), (ctypes.c_int64 * 3)(7, 8, 9), (ctypes.c_int64 * 3)()
    results = [_memory(out), _memory(a)]
    for args, why in (
        ([_memory(a)], "has 2 arguments, 1 were given"),
        ([_memory(a), (_memory(b)[0], 20)], r"argument 1.* has 24 bytes, its memory 20"),
        ([(0, 24), _memory(b)], r"argument 0.* is NULL"),
    ):
        with pytest.raises(_runtime.Error, match=why) as caught:
            exe.run(args, results)
        assert caught.value.code == "ARGUMENT"
    assert list(out) == [0, 0, 0]


def test_facts_about_a_program():
    exe = _runtime.default_environment().compile(PROGRAM, "runtime test")
    assert exe.memory()["alias_bytes"] == 24
    report = exe.report("trn1")
    assert report["target"] == "trn1" and report["total_us"] > 0
    assert sum(report["instructions"].values()) > 0
    again = _runtime.default_environment().compile(exe.artifact(), "artifact")
    assert again.arg_types() == exe.arg_types()


def test_errors_carry_code_and_place():
    with pytest.raises(_runtime.Error, match="bad.mlir") as caught:
        _runtime.default_environment().compile(b"func.func public @main( {", "bad.mlir")
    assert caught.value.code == "PARSE"
