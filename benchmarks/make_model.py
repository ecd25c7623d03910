"""Write a random-weight mlx-lm model folder, for speed and memory runs.

The shapes are those of public models; the weights are seeded noise, quantized
as asked, and the tokenizer is a byte-level one made on the spot. So nothing is
downloaded and the figures are those of the real model.

    python benchmarks/make_model.py qwen3-0.6b .models/qwen3-0.6b
    python -m mlx_lm benchmark --model .models/qwen3-0.6b -p 512 -g 128 -n 4
"""

import argparse
import json
import shutil
from pathlib import Path

from mlx_vulkan.bench import shapes


def save_tokenizer(folder: Path) -> None:
    """A byte-level BPE without merges: 256 byte tokens and an end token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(alphabet)}
    vocab["<|end|>"] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|end|>",
        "chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def make(args) -> None:
    import mlx.core as mx
    from mlx.utils import tree_flatten

    folder = args.folder
    folder.mkdir(parents=True, exist_ok=True)
    mx.set_default_device(mx.gpu if args.gpu else mx.cpu)
    more = {name: json.loads(value) for name, value in args.set}
    how = (args.bits, args.group_size, args.dtype)
    model, config = shapes.make(args.shape, *how, **more)
    weights = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(
        str(folder / "model.safetensors"), weights, metadata={"format": "mlx"}
    )
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    if args.tokenizer:
        for file in args.tokenizer.glob("*token*.json"):
            shutil.copy(file, folder)
    else:
        save_tokenizer(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=sorted(shapes.SHAPES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bits", type=int, default=4, help="0: not quantized")
    parser.add_argument("--group-size", type=int, default=128)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--tokenizer", type=Path, help="folder of another one")
    parser.add_argument(
        *("--set", "-s"),
        action="append",
        default=[],
        type=lambda text: text.split("=", 1),
        metavar="NAME=VALUE",
        help="another value of the shape's: -s num_hidden_layers=2",
    )
    parser.add_argument("--gpu", action="store_true", help="make them there: sooner")
    make(parser.parse_args())


if __name__ == "__main__":
    main()
