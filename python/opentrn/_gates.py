# SPDX-License-Identifier: Apache-2.0
"""Features that JAX opens by a fixed list of platform names, opened for ours.

JAX has no public hook for them, so private names are touched here. Each is touched only when it
looks as expected; otherwise it is left alone and a warning says what will not work.
"""

import ctypes
import functools
import inspect
import threading
import warnings
import weakref
from typing import Any

from opentrn import _library

SMALL_FUNCTIONS = 16


class _Unexpected(Exception):
    pass


def _need(condition, what):
    if not condition:
        raise _Unexpected(what)


def _parameters(function, *names):
    have = tuple(inspect.signature(function).parameters)
    _need(have == names, f"{function.__name__}{have} where {names} was expected")


def _donation(platform):
    from jax._src.interpreters import mlir

    platforms = mlir._platforms_with_donation
    _need(
        isinstance(platforms, list) and "cpu" in platforms,
        "_platforms_with_donation is not a list of names",
    )
    if platform not in platforms:
        platforms.append(platform)


def _persistent_cache(platform):
    from jax._src import compilation_cache, config

    used, folder = compilation_cache.is_cache_used, config.compilation_cache_dir
    _parameters(used, "backend")
    _need(hasattr(compilation_cache, "_cache"), "no compilation_cache._cache")

    class Backend:  # as is_cache_used looks at it
        platform = "neuron"
        supports_executable_serialization = True

    @functools.wraps(used)
    def is_cache_used(backend):
        if getattr(backend, "platform", None) != platform:
            return used(backend)
        # Without a folder JAX would still compute the program's key, a fifth of a small compile.
        return bool(folder.value or compilation_cache._cache) and used(Backend)

    compilation_cache.is_cache_used = is_cache_used


def _small_programs(platform):
    """jaxlib hands the functions of a module to a pool of threads, pass by pass. With a few small
    functions that costs more than it saves, about a sixth of the whole compile, so such a module
    is compiled without. Only one thread at a time may then be at work in the module's context."""
    from jax._src import compiler

    compile_and_load = compiler.backend_compile_and_load
    _parameters(
        compile_and_load, "backend", "module", "executable_devices", "options", "host_callbacks"
    )
    one_sets = threading.Lock()

    def lock_of(context):
        with one_sets:
            if not hasattr(context, "opentrn_lock"):
                context.opentrn_lock = threading.Lock()
                context.enable_multithreading(False)
            return context.opentrn_lock

    @functools.wraps(compile_and_load)
    def backend_compile_and_load(backend, module, *rest, **named):
        if (
            getattr(backend, "platform", None) != platform
            or not hasattr(module.context, "__dict__")  # not made by JAX
            or sum(1 for _ in module.body) > SMALL_FUNCTIONS
        ):
            return compile_and_load(backend, module, *rest, **named)
        with lock_of(module.context):
            return compile_and_load(backend, module, *rest, **named)

    compiler.backend_compile_and_load = backend_compile_and_load


def _warnings(platform):
    """What did not make a compilation fail, as a cache that cannot be written, is a warning."""
    from jax._src import compiler

    compile_and_load = compiler.backend_compile_and_load

    @functools.wraps(compile_and_load)
    def backend_compile_and_load(backend, *rest, **named):
        done = compile_and_load(backend, *rest, **named)
        if getattr(backend, "platform", None) == platform:
            client = backend.devices()[0].opentrn_client  # 0: compiled for a machine that is not there
            out = ctypes.create_string_buffer(1024)
            if client and _library.load().opentrn_warning(client, out, len(out)):
                warnings.warn(f"opentrn: {out.value.decode(errors='replace')}", stacklevel=2)
        return done

    compiler.backend_compile_and_load = backend_compile_and_load


def _callbacks(platform):
    from jax._src import callback
    from opentrn import _callback

    emit = callback.emit_python_callback
    _parameters(
        emit,
        "ctx",
        "callback",
        "token",
        "operands",
        "operand_avals",
        "result_avals",
        "has_side_effect",
        "returns_token",
        "partitioned",
        "sharding",
    )

    @functools.wraps(emit)
    def emit_python_callback(
        ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect, **rest
    ):
        ours = tuple(ctx.module_context.platforms) == (platform,)
        own: Any = _callback.emit if ours else functools.partial(emit, **rest)
        return own(
            ctx,
            callback,
            token,
            operands,
            operand_avals,
            result_avals,
            has_side_effect=has_side_effect,
        )

    callback.emit_python_callback = emit_python_callback


def _callbacks_are_not_stored(platform):
    """A name of a callback means nothing in another process, so no key for such a program."""
    from jax._src import compiler
    from opentrn import _callback

    get_cache_key = compiler._get_cache_key
    have = tuple(inspect.signature(get_cache_key).parameters)
    _need(have[:3] == ("options", "backend", "computation"), f"_get_cache_key{have} is another")

    @functools.wraps(get_cache_key)
    def _get_cache_key(options, backend, computation, *rest, **named):
        if _callback.MARK in computation.operation.attributes:
            return None
        return get_cache_key(options, backend, computation, *rest, **named)

    compiler._get_cache_key = _get_cache_key


def _debug(platform):
    from jax._src import debugging
    from jax._src.interpreters import mlir

    for primitive, rule in (
        ("debug_callback_p", "debug_callback_lowering"),
        ("debug_print_p", "debug_print_lowering_rule"),
    ):
        if hasattr(debugging, primitive):
            mlir.register_lowering(
                getattr(debugging, primitive), getattr(debugging, rule), platform=platform
            )


def _checks(platform):
    from jax._src import checkify
    from jax._src.interpreters import mlir

    mlir.register_lowering(checkify.check_p, checkify.check_lowering_rule, platform=platform)


def _memory_kinds(platform):
    from jax._src import dispatch
    from jax._src.interpreters import mlir

    rule = dispatch._tpu_gpu_device_put_lowering
    _parameters(rule, "ctx", "xs", "devices", "srcs", "copy_semantics")
    mlir.register_lowering(dispatch.device_put_p, rule, platform=platform)


def _cost_of_lowered(platform):
    from jax._src.interpreters import pxla

    computation = pxla.MeshComputation
    cost = computation.cost_analysis
    _parameters(cost, "self")
    _need(hasattr(computation, "compile"), "MeshComputation.compile is missing")

    @functools.wraps(cost)
    def cost_analysis(self):
        if getattr(self.compile_args["backend"], "platform", None) != platform:
            return cost(self)
        return self.compile().cost_analysis()

    computation.cost_analysis = cost_analysis  # type: ignore[method-assign]


def _partitioning(platform):
    """JAX's partitioner answers with a program in a form that only jaxlib reads; ours turns it into text. Whoever registers
    first stays, and JAX registers its own when all plugins are known (src/pjrt/partition.c)."""
    from jax._src import custom_partitioning as custom
    from jax._src import xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    answer = custom._custom_partitioning_partition
    _parameters(
        answer, "arg_shapes", "arg_shardings", "result_shape", "result_sharding", "backend_string"
    )

    def partition(*question):
        program, *shardings = answer(*question)
        with mlir.make_ir_context():
            text: Any = ir.Module.parse(program).operation.get_asm(enable_debug_info=False)
        return text.encode(), *shardings

    xla_client.register_custom_call_partitioner(
        name=custom._CUSTOM_PARTITIONING_CALL_NAME,
        prop_user_sharding=custom._custom_partitioning_propagate_user_sharding,
        partition=partition,
        infer_sharding_from_operands=custom._custom_partitioning_infer_sharding_from_operands,
        can_side_effecting_have_replicated_sharding=True,
        c_api=xla_bridge._backend_factories[platform].c_api,
    )


def _inspecting(platform):
    """jax.debug.inspect_array_sharding gives XLA's partitioner the address of a function inside the program. Here the call is
    cut like any that has a partitioner, which knows the function by the address and never calls an address."""
    from jax._src import debugging, xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client

    encode = xla_client.encode_inspect_sharding_callback
    functions: Any = weakref.WeakValueDictionary()

    @functools.wraps(encode)
    def remember(function):
        key = encode(function)
        functions[key] = function
        return key

    def partition(arg_shapes, arg_shardings, result_shape, result_sharding, config):
        (shape,), (sharding,) = arg_shapes, arg_shardings
        functions[config](sharding)
        part = sharding.tile(shape)
        with mlir.make_ir_context():
            element = str(mlir.dtype_to_ir_type(part.numpy_dtype()))
        tensor = f"tensor<{'x'.join(map(str, (*part.dimensions(), element)))}>"
        text = f"func.func public @main(%x: {tensor}) -> {tensor} {{ return %x : {tensor} }}"
        return text.encode(), [sharding], sharding

    xla_client.register_custom_call_partitioner(
        name=debugging._INSPECT_SHARDING_CALL_NAME,
        prop_user_sharding=lambda sharding, *_: sharding,
        partition=partition,
        infer_sharding_from_operands=lambda shapes, shardings, *_: shardings[0],
        can_side_effecting_have_replicated_sharding=True,
        c_api=xla_bridge._backend_factories[platform].c_api,
    )
    xla_client.encode_inspect_sharding_callback = remember


# What is opened, and what a user misses without it.
GATES = (
    (_donation, "donated arrays will be copied"),
    (_persistent_cache, "jax_compilation_cache_dir has no effect"),
    (_small_programs, "small programs take longer to compile"),
    (_warnings, "a cache that cannot be written says nothing"),
    (_callbacks, "pure_callback, io_callback and debug.print do not work"),
    (_callbacks_are_not_stored, "programs with callbacks go into jax_compilation_cache_dir, of no use"),
    (_debug, "debug.print and debug.callback do not work"),
    (_checks, "checkify.check does not work without checkify.checkify"),
    (_cost_of_lowered, "only compiled functions tell their cost"),
    (_memory_kinds, "memory kinds inside jit are ignored"),
    (_partitioning, "custom_partitioning does not work over several devices"),
    (_inspecting, "inspect_array_sharding does not work inside jit over several devices"),
)


def open_all(platform):
    for gate, missing in GATES:
        try:
            gate(platform)
        except (ImportError, AttributeError, TypeError, ValueError, _Unexpected) as error:
            warnings.warn(f"opentrn: this JAX is unknown here ({error}); {missing}", stacklevel=2)
