"""Time a few operations that say what to expect of a device."""

import time


def add_arguments(parser) -> None:
    parser.add_argument("--seconds", type=float, default=0.5, help="per operation")
    parser.add_argument("--size", type=int, default=0, help="side of the matrices")


def measure(function, seconds: float) -> float:
    """Seconds per call: batches of growing size, the best batch counts."""
    import mlx.core as mx

    mx.eval(function())
    best, calls, end = float("inf"), 1, time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        mx.eval([function() for _ in range(calls)])
        spent = time.perf_counter() - started
        best = min(best, spent / calls)
        if spent < seconds / 20:
            calls *= 2
    return best


def run(args) -> int:
    import mlx.core as mx

    if not mx.is_available(mx.gpu):
        print("There is no Vulkan device; `mlx-vulkan doctor` says why.")
        return 1
    mx.set_default_device(mx.gpu)
    print(f"{mx.device_info().get('device_name', 'gpu')}")
    software = "llvmpipe" in str(mx.device_info().get("device_name"))
    n = args.size or (512 if software else 4096)
    rows = []

    a = mx.random.normal((n, n)).astype(mx.float32)
    mx.eval(a)
    seconds = measure(lambda: a + 1.0, args.seconds)
    rows.append(("add f32", seconds, f"{2 * a.nbytes / seconds / 1e9:.1f} GB/s"))
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        b = a.astype(dtype)
        mx.eval(b)
        seconds = measure(lambda b=b: b @ b, args.seconds)
        name = str(dtype).rsplit(".", 1)[-1]
        flops = f"{2 * n**3 / seconds / 1e12:.3f} TFLOP/s"
        rows.append((f"matmul {name}", seconds, flops))
    x = mx.random.normal((1, n)).astype(mx.bfloat16)
    w, scales, biases = mx.quantize(a.astype(mx.bfloat16), group_size=64, bits=4)
    mx.eval(x, w, scales, biases)
    seconds = measure(
        lambda: mx.quantized_matmul(x, w, scales, biases, group_size=64, bits=4),
        args.seconds,
    )
    moved = (w.nbytes + scales.nbytes + biases.nbytes) / seconds / 1e9
    rows.append(("quantized matvec 4-bit", seconds, f"{moved:.1f} GB/s"))
    for name, seconds, rate in rows:
        print(f"  {name:<24} {seconds * 1e6:10.1f} us   {rate}")
    return 0
