"""Custom kernels in GLSL (docs/custom-kernels.md)."""

import re

import mlx.core as mx

_MARKER = "// mlx_vulkan.fast.vulkan_kernel subgroup_size={}\n"


def vulkan_kernel(
    name,
    input_names,
    output_names,
    source,
    header="",
    ensure_row_contiguous=True,
    atomic_outputs=False,
):
    """A kernel whose body is GLSL, with the conventions of mx.fast.metal_kernel.

    The result is called as metal_kernel's, by keywords: ``inputs``,
    ``output_shapes``, ``output_dtypes``, ``grid`` and ``threadgroup`` (in
    threads), and optionally ``template``, ``init_value``, ``verbose`` (prints the
    whole shader), ``stream`` and ``subgroup_size`` (invocations of a subgroup that
    the source is written for; a device that cannot promise them raises). It
    returns a list of lazy arrays and is a primitive of MLX: it works in
    mx.compile and mx.export_function, and has no gradient or vmap of its own.

    Args:
      name (str): For messages and profiles.
      input_names (list[str]): Names of the inputs' pointers in the source.
      output_names (list[str]): Names of the outputs' pointers.
      source (str): The body of main(). Memory is accessed by ``load(x, i)`` and
        ``store(y, i, value)`` only; a value has the type ``T_x``, float for
        float16, bfloat16 and float32.
      header (str): Code before main(): functions, shared variables.
      ensure_row_contiguous (bool): Copies inputs that are not. Otherwise
        ``x_loc(i)`` is the position of item i of x.
      atomic_outputs (bool): As in metal_kernel. ``atomic_add(y, i, value)`` and
        similar functions work on any output.
    """
    located = {n for n in input_names if re.search(rf"\b{re.escape(n)}_loc\b", source)}
    # MLX passes shape, strides and ndim if the source names them.
    notes = [f"// {n}_shape {n}_strides {n}_ndim" for n in sorted(located)]
    whole = "\n".join([source, *notes])
    kernels = {}

    def run(*, subgroup_size=None, **arguments):
        size = 0 if subgroup_size is None else subgroup_size
        if not isinstance(size, int) or not 0 <= size <= 128 or size & (size - 1):
            raise ValueError(
                f"[vulkan_kernel] {name}: subgroup_size={subgroup_size!r} is not "
                "a power of two up to 128."
            )
        if size not in kernels:
            kernels[size] = mx.fast.metal_kernel(
                name=name,
                input_names=input_names,
                output_names=output_names,
                source=whole,
                header=_MARKER.format(size) + header,
                ensure_row_contiguous=ensure_row_contiguous,
                atomic_outputs=atomic_outputs,
            )
        return kernels[size](**arguments)

    run.__name__ = run.__qualname__ = name
    return run
