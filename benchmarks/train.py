"""Training steps of a Qwen3-0.6B-shaped model: tokens/s, beside PyTorch eager.

    python benchmarks/train.py {lora,full} [--torch] [--json FILE]

Random bf16 weights, `--batch` sequences of `--tokens`, Adam. With MLX the loss,
LoRA layers (rank 8, all linear layers of all blocks) and the compiled step are
mlx-lm's; `--torch` takes transformers' Qwen3, PyTorch's attention and Adam on
CUDA. Prints the median of `--steps` steps after three, in tokens/s.
"""

import argparse
import json
import statistics
import time

from mlx_vulkan.bench.shapes import SHAPES

SHAPE = SHAPES["qwen3-0.6b"]
RANK, SCALE = 8, 20.0


def mlx_step(args):
    """A function of no arguments that makes a step and returns its loss."""
    from functools import partial

    import mlx.core as mx
    import mlx.nn as nn
    import mlx.optimizers as optim
    from mlx.utils import tree_map
    from mlx_lm.models import qwen3
    from mlx_lm.tuner.trainer import default_loss
    from mlx_lm.tuner.utils import linear_to_lora_layers

    mx.random.seed(0)
    shape = SHAPE | {"num_hidden_layers": args.layers}
    model = qwen3.Model(qwen3.ModelArgs.from_dict(shape))
    if args.mode == "lora":
        model.freeze()
        config = {"rank": RANK, "scale": SCALE, "dropout": 0.0}
        linear_to_lora_layers(model, args.layers, config)
    model.update(tree_map(lambda p: p.astype(mx.bfloat16), model.parameters()))
    model.train()
    optimizer = optim.Adam(learning_rate=1e-5)
    state = [model.state, optimizer.state, mx.random.state]
    mx.eval(state)
    batch = mx.random.randint(0, SHAPE["vocab_size"], (args.batch, args.tokens + 1))
    lengths = mx.array([[0, args.tokens]] * args.batch)
    gradient = nn.value_and_grad(model, default_loss)

    @partial(mx.compile, inputs=state, outputs=state)
    def step():
        (loss, _), grads = gradient(model, batch, lengths)
        optimizer.update(model, grads)
        return loss

    def run():
        loss = step()
        mx.eval(state, loss)
        return loss.item()

    return run, lambda: mx.get_peak_memory()


def torch_step(args):
    """The same step in PyTorch, eager."""
    import torch
    from torch.nn import functional
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    shape = {k: v for k, v in SHAPE.items() if k != "model_type"}
    shape["num_hidden_layers"] = args.layers
    config = Qwen3Config(**shape, attn_implementation="sdpa")
    with torch.device("cuda"):
        model = Qwen3ForCausalLM(config).to(torch.bfloat16)

    class Lora(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
            made = {"device": "cuda", "dtype": torch.bfloat16}
            self.a = torch.nn.Parameter(
                torch.randn(RANK, base.in_features, **made) / base.in_features**0.5
            )
            self.b = torch.nn.Parameter(torch.zeros(base.out_features, RANK, **made))

        def forward(self, x):
            low = functional.linear(x, self.a)
            return self.base(x) + SCALE * functional.linear(low, self.b)

    if args.mode == "lora":
        model.requires_grad_(False)
        for layer in model.model.layers:
            for block in (layer.self_attn, layer.mlp):
                for name, child in list(block.named_children()):
                    if isinstance(child, torch.nn.Linear):
                        setattr(block, name, Lora(child))
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=1e-5)
    batch = torch.randint(
        0, SHAPE["vocab_size"], (args.batch, args.tokens + 1), device="cuda"
    )

    def run():
        optimizer.zero_grad(set_to_none=True)
        logits = model(input_ids=batch[:, :-1], use_cache=False).logits
        loss = functional.cross_entropy(
            logits.flatten(0, 1).float(), batch[:, 1:].flatten()
        )
        loss.backward()
        optimizer.step()
        return loss.item()

    return run, torch.cuda.max_memory_allocated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("mode", choices=["lora", "full"])
    parser.add_argument("--torch", action="store_true", help="PyTorch on CUDA")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--json", help="also write the result there")
    args = parser.parse_args()

    run, peak = (torch_step if args.torch else mlx_step)(args)
    losses = [run() for _ in range(3)]
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        losses.append(run())
        seconds.append(time.perf_counter() - start)
    count = args.batch * args.tokens
    result = {
        "mode": args.mode,
        "framework": "torch" if args.torch else "mlx",
        "tokens/s": round(count / statistics.median(seconds), 1),
        "least, most": [round(count / f(seconds), 1) for f in (max, min)],
        "peak GB": round(peak() / 1e9, 2),
        "losses": [round(losses[0], 4), round(losses[-1], 4)],
    }
    print(json.dumps(result))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
