"""The cells that are tuned: a model's decode steps and prompts."""

from .. import models
from ..arguments import Failed
from .check import ATTENTION, BATCH_GATHER, NORM

LAYERS = 4  # that are kept: they are alike
CONTEXT, SHORT = 512, 16  # tokens before a decode step; of software devices
STEPS = 4  # of a sample
CHUNK = 2048  # tokens of a prompt that mlx-lm takes at once
# In the order of what matters to most; the third: another context.
CELLS = (
    ("decode", 1),
    ("prompt", 512),
    ("prompt", 2048),
    ("decode", 8),
    ("decode", 1, 4096),
    ("decode", 32),
    ("prompt", 128),
    ("decode", 4),
    ("decode", 16),
    ("decode", 64),
    ("decode", 2),
    ("prompt", 1024),
    ("prompt", 4096),
    ("prompt", 256),
    ("prompt", 64),
    ("prompt", 32),
    ("prompt", 16),
)


class Cell:
    """One size of step; run() starts it and does not wait."""

    def __init__(self, model, vocabulary: int, kind: str, rows: int, context: int):
        import mlx.core as mx
        from mlx_lm.models.cache import make_prompt_cache, trim_prompt_cache

        after = "" if context in (CONTEXT, SHORT) else f" after {context}"
        self.mx, self.model, self.name = mx, model, f"{kind} {rows}{after}"
        self.kind, self.rows = kind, rows
        self.make_cache, self.trim = make_prompt_cache, trim_prompt_cache
        mx.random.seed(3)
        if kind == "prompt":
            self.tokens = mx.random.randint(0, vocabulary, (1, rows))
            self.calls = 1
            return
        self.calls = STEPS
        self.tokens = mx.random.randint(0, vocabulary, (rows, 1))
        self.cache = make_prompt_cache(model)
        before = mx.random.randint(0, vocabulary, (rows, context))
        for i in range(0, context, 128):  # 64 rows of a prompt need memory
            model(before[:, i : i + 128], cache=self.cache)
            mx.eval([c.state for c in self.cache])

    def run(self):
        """The last step's logits, which nobody has computed of a prompt: mlx-lm
        does not either."""
        mx = self.mx
        if self.kind == "prompt":
            cache = self.make_cache(self.model)
            for i in range(0, self.rows, CHUNK):
                y = self.model(self.tokens[:, i : i + CHUNK], cache=cache)
                mx.async_eval([c.state for c in cache])
            return y
        for _ in range(self.calls):
            y = self.model(self.tokens, cache=self.cache)
            mx.async_eval(y)
            self.trim(self.cache, 1)
        return y


def load(job: dict):
    """The model with few layers, and its vocabulary."""
    import mlx.core as mx

    mx.set_default_device(mx.gpu)
    models.require_mlx_lm()
    if job["shape"]:
        from ..bench.shapes import SHAPES, make

        shape = SHAPES[job["shape"]]
        layers = min(LAYERS, shape.get("num_hidden_layers", LAYERS))
        more = {"num_hidden_layers": layers} if "num_hidden_layers" in shape else {}
        model, config = make(job["shape"], job["bits"], None, "bfloat16", **more)
    else:
        from mlx_lm.utils import load_model

        path = models.folder_of(job["model"])
        with models.loading(path):
            model, config = load_model(path, lazy=True)
            layers = getattr(model, "layers", None)
            if isinstance(layers, list):
                del layers[LAYERS:]
            mx.eval(model.parameters())
    vocabulary = config.get("text_config", config).get("vocab_size")
    if not vocabulary:
        raise Failed(f"{job['model']} has no vocab_size in its config.json.")
    return model, vocabulary


FLOPS_PER_BYTE = 100  # of what reads and multiplies at once, about as a GPU


def work(found: dict) -> float:
    """An estimate of the share of a step's time that a class of problems takes: bytes,
    or operations in their place if those take longer."""
    p = found["members"]
    if found["kind"] == NORM:  # of rows that are not known
        return 4 * found["calls"] * p["n"]
    batch = p["batch"]
    if found["kind"] == ATTENTION:
        items = p["keys"] * (p["dim"] + p["value_dim"])
        size, flops = 2 * p["kv_heads"] * items, 2 * p["heads"] * p["queries"] * items
        return found["calls"] * batch * max(size, flops / FLOPS_PER_BYTE)
    matrices = batch
    if p["stack"] == BATCH_GATHER:  # of experts, those that rows chose
        matrices = min(batch * p["m"], p.get("matrices", batch))
    outputs, k = p["n"], p["k"]
    size = matrices * outputs * k * p.get("bits", 16) / 8
    size += 2 * batch * p["m"] * (outputs + k)
    flops = 2 * batch * p["m"] * outputs * k
    return found["calls"] * max(size, flops / FLOPS_PER_BYTE)
