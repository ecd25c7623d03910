"""A small random transformer, prompt and decode, against MLX's CPU.

What a language model does, in one graph: a quantized embedding, RMSNorm, rope,
grouped attention on a cache that is updated in place, SwiGLU and, in one
variant, a mixture of experts with sorted and unsorted gathers.
"""

import functools

import numpy as np

from ..cases import on_cpu, to_numpy
from .check import Check, WrongValues

VOCABULARY, WIDTH, HIDDEN, LAYERS = 1000, 256, 512, 2
HEADS, KV_HEADS, HEAD = 8, 2, 32
EXPERTS, CHOSEN = 8, 2
PROMPT, STEPS = 150, 5
GROUP, BITS = 64, 4

# The distance of 1 from the next number.
EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def build(mx, dtype, experts: bool, seed: int) -> list[dict]:
    """Weights by name, quantized on the CPU: layers, then embedding and head."""
    rng = np.random.default_rng(seed)

    def quantized(*shape):
        w = rng.normal(size=shape) / np.sqrt(shape[-1])
        return mx.quantize(mx.array(w.astype(np.float32)).astype(dtype), GROUP, BITS)

    def scale():
        return mx.array(rng.uniform(0.5, 1.5, WIDTH).astype(np.float32)).astype(dtype)

    many = (EXPERTS,) if experts else ()
    layers = []
    with mx.stream(mx.cpu):
        for _ in range(LAYERS):
            layer = {
                "attention_norm": scale(),
                "mlp_norm": scale(),
                "q": quantized(HEADS * HEAD, WIDTH),
                "k": quantized(KV_HEADS * HEAD, WIDTH),
                "v": quantized(KV_HEADS * HEAD, WIDTH),
                "o": quantized(WIDTH, HEADS * HEAD),
                "gate": quantized(*many, HIDDEN, WIDTH),
                "up": quantized(*many, HIDDEN, WIDTH),
                "down": quantized(*many, WIDTH, HIDDEN),
            }
            if experts:
                layer["router"] = quantized(EXPERTS, WIDTH)
            layers.append(layer)
        layers.append({"norm": scale(), "embedding": quantized(VOCABULARY, WIDTH)})
        mx.eval(layers)
    return layers


def linear(mx, x, w):
    return mx.quantized_matmul(x, *w, group_size=GROUP, bits=BITS)


def new_cache(mx, dtype):
    shape = (1, KV_HEADS, PROMPT + STEPS, HEAD)
    return [[mx.zeros(shape, dtype), mx.zeros(shape, dtype)] for _ in range(LAYERS)]


def attention(mx, layer, x, cache, start):
    length = x.shape[1]

    def heads(name, count):
        y = linear(mx, x, layer[name]).reshape(1, length, count, HEAD)
        return y.swapaxes(1, 2)

    def turn(y):
        return mx.fast.rope(
            y, HEAD, traditional=False, base=1e4, scale=1.0, offset=start
        )

    end = start + length
    q, k, v = turn(heads("q", HEADS)), turn(heads("k", KV_HEADS)), heads("v", KV_HEADS)
    cache[0][:, :, start:end] = k
    cache[1][:, :, start:end] = v
    y = mx.fast.scaled_dot_product_attention(
        q,
        cache[0][:, :, :end],
        cache[1][:, :, :end],
        scale=HEAD**-0.5,
        mask="causal" if length > 1 else None,
    )
    return linear(mx, y.swapaxes(1, 2).reshape(1, length, -1), layer["o"])


def swiglu(mx, gate, up):
    return gate * mx.sigmoid(gate) * up


def dense(mx, layer, x, fused):
    gate, up = linear(mx, x, layer["gate"]), linear(mx, x, layer["up"])
    return linear(mx, fused(gate, up), layer["down"])


def mixture(mx, layer, x, fused, routes):
    """Each token through CHOSEN experts; many tokens are sorted by expert. The
    routes are `routes` where given: a tie in the router is no error."""
    length = x.shape[1]
    scores = linear(mx, x, layer["router"]).astype(mx.float32)
    chosen = routes.pop(0)
    scores = mx.softmax(mx.take_along_axis(scores, chosen, -1), axis=-1)
    flat, token = chosen.reshape(-1), mx.arange(length * CHOSEN) // CHOSEN
    order = mx.argsort(flat) if length > 1 else mx.arange(CHOSEN)
    flat, token = flat[order].astype(mx.uint32), token[order]

    def expert(y, name):
        return mx.gather_qmm(
            y,
            *layer[name],
            rhs_indices=flat,
            group_size=GROUP,
            bits=BITS,
            sorted_indices=length > 1,
        )

    rows = x.reshape(length, 1, WIDTH)[token]
    y = expert(fused(expert(rows, "gate"), expert(rows, "up")), "down")
    y = mx.take(y, mx.argsort(order), axis=0).reshape(1, length, CHOSEN, WIDTH)
    return (y * scores[..., None].astype(y.dtype)).sum(axis=2)


def forward(mx, layers, tokens, cache, start, fused, routes):
    """Logits of the last token, float32."""
    *blocks, ends = layers
    w, scales, biases = (part[tokens] for part in ends["embedding"])
    x = mx.dequantize(w, scales, biases, GROUP, BITS)[None]
    for layer, kept in zip(blocks, cache):
        y = mx.fast.rms_norm(x, layer["attention_norm"], 1e-5)
        x = x + attention(mx, layer, y, kept, start)
        y = mx.fast.rms_norm(x, layer["mlp_norm"], 1e-5)
        if "router" in layer:
            x = x + mixture(mx, layer, y, fused, routes)
        else:
            x = x + dense(mx, layer, y, fused)
    x = mx.fast.rms_norm(x[:, -1:], ends["norm"], 1e-5)
    return linear(mx, x, ends["embedding"]).astype(mx.float32)[0, 0]


def logits(mx, layers, dtype, tokens, routes) -> list[np.ndarray]:
    """Logits of the prompt and of each step; the cache is kept between them."""
    fused = mx.compile(functools.partial(swiglu, mx))
    cache, found = new_cache(mx, dtype), []
    routes = [mx.array(r) for r in routes]
    cuts = [0, *range(PROMPT, PROMPT + STEPS)]
    for start, end in zip(cuts, [*cuts[1:], PROMPT + STEPS]):
        found.append(
            forward(mx, layers, tokens[start:end], cache, start, fused, routes)
        )
        mx.async_eval(found[-1], cache)
    return [to_numpy(mx, x) for x in found]


def widened(mx, layers):
    """The same codes with scales and norms in float32."""

    def wide(a):
        return a if a.dtype == mx.uint32 else a.astype(mx.float32)

    return [
        {
            name: wide(w) if isinstance(w, mx.array) else [wide(part) for part in w]
            for name, w in layer.items()
        }
        for layer in layers
    ]


def chosen_experts(seed):
    """Experts of each call of each layer: two different ones for a token."""
    rng = np.random.default_rng([seed, 1])
    lengths = [PROMPT] + [1] * STEPS
    return [
        np.argsort(rng.random((1, n, EXPERTS)), -1)[..., :CHOSEN].astype(np.uint32)
        for n in lengths
        for _ in range(LAYERS)
    ]


def run(dtype_name: str, experts: bool, seed: int) -> dict:
    """Largest distance of the logits from the CPU's, relative to their norm.

    A layer rounds some 12 tensors of the residual's size, each by EPS / 2 at
    most, 0.29 EPS in the mean: sqrt(24 * 0.29^2) = 1.4 EPS after two layers; 6
    leaves room for what norms and softmax magnify. In float32 rope's angles, up
    to PROMPT radians, lose up to PROMPT / 2 units.
    """
    import mlx.core as mx

    dtype = getattr(mx, dtype_name)
    allowed = 6 * EPS[dtype_name] + PROMPT * EPS["float32"]
    layers = build(mx, dtype, experts, seed)
    ids = np.random.default_rng([seed, 2]).integers(0, VOCABULARY, PROMPT + STEPS)
    tokens, routes = mx.array(ids.astype(np.int32)), chosen_experts(seed)
    got = logits(mx, layers, dtype, tokens, routes)
    with on_cpu(mx):
        want = logits(mx, widened(mx, layers), mx.float32, tokens, routes)
    errors = []
    for step, (g, w) in enumerate(zip(got, want)):
        error = float(np.linalg.norm(g - w) / np.linalg.norm(w))
        errors.append(error)
        if not error <= allowed:
            tokens = "the prompt" if step == 0 else f"decode step {step}"
            raise WrongValues(
                f"logits after {tokens} are off by {error:.3g} of their norm, allowed "
                f"{allowed:.3g}; token {int(np.argmax(g))}, not {int(np.argmax(w))}"
            )
    return {"error": max(errors), "allowed": allowed}


CHECKS = [
    Check(
        "model",
        f"{'experts' if experts else 'dense'}-{short}",
        work=functools.partial(run, dtype, experts),
    )
    for experts in (False, True)
    for short, dtype in (("f32", "float32"), ("f16", "float16"), ("bf16", "bfloat16"))
]
