"""Write the table of what fits which card into docs/models.md.

python tools/gen_fit.py           # writes it
python tools/gen_fit.py --check   # fails if it is out of date

It stands between `<!-- fit -->` and `<!-- end -->`; `mlx-vulkan fit` computes it from
shapes of public models, in 4 bits with groups of 64.
"""

import argparse
import re
import sys
from pathlib import Path

from mlx_vulkan import fit
from mlx_vulkan.bench import shapes

PAGE = Path(__file__).resolve().parent.parent / "docs" / "models.md"
MARKED = re.compile(r"(<!-- fit -->\n).*?(<!-- end -->)", re.DOTALL)
CARDS = (8, 12, 16, 24)
MODELS = {
    "Qwen3 0.6B": "qwen3-0.6b",
    "Qwen3 4B": "qwen3-4b",
    "Qwen3 8B": "qwen3-8b",
    "Qwen3 14B": "qwen3-14b",
    "Qwen3 32B": "qwen3-32b",
    "Qwen3 30B-A3B": "qwen3-30b-a3b",
    "Llama 3 8B": "llama3-8b",
    "Gemma 3 4B": "gemma3-4b",
    "Gemma 3 12B": "gemma3-12b",
    "Gemma 3 27B": "gemma3-27b",
}


def table() -> str:
    head = "".join(f" {card} GB |" for card in CARDS)
    rows = [
        f"| model | weights | KiB per token |{head}",
        "|---" * (3 + len(CARDS)) + "|",
    ]
    for name, shape in MODELS.items():
        model, config = shapes.lazy(shape, 4, 64, "bfloat16")
        sizes = fit.sizes_of(model, config)
        cells = [name, fit.gb(sizes.weights), f"{sizes.per_token / 1024:.0f}"]
        for card in CARDS:
            found = fit.fit(sizes, fit.memory_of(card))
            host = f" ({fit.gb(found.host)} in RAM)" if found.host else ""
            slow = "" if found.tokens else "slow: "
            tokens = found.tokens or found.most
            cells.append(f"{slow}{tokens:,}{host}" if tokens else "no")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join([*rows, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    before = PAGE.read_text("utf-8")
    text, count = MARKED.subn(lambda m: m[1] + table() + m[2], before)
    if not count:
        raise SystemExit(f"{PAGE} has no `<!-- fit -->`")
    if text != before and args.check:
        print(f"{PAGE} is out of date: python tools/gen_fit.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
