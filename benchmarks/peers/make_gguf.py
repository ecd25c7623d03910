"""Write a model of a Qwen3 shape with random weights for llama.cpp, all of its
matrices in Q4_0. Needs the package gguf.

    python benchmarks/peers/make_gguf.py qwen3-0.6b .models/qwen3-0.6b.gguf
"""

import argparse
import sys
from pathlib import Path

import gguf
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python"))
BLOCK = np.dtype([("scale", "<f2"), ("codes", "u1", 16)])  # of 32 weights


def blocks(count: int) -> np.ndarray:
    """Weights of zero mean, as small as those of a model."""
    rng = np.random.default_rng(7)
    made = np.empty(min(count, 1 << 20), BLOCK)
    made["scale"] = rng.uniform(0.001, 0.006, made.size)
    made["codes"] = rng.integers(0, 256, (made.size, 16))
    return np.resize(made, count)


def metadata(writer: gguf.GGUFWriter, shape: dict) -> None:
    writer.add_block_count(shape["num_hidden_layers"])
    writer.add_context_length(shape["max_position_embeddings"])
    writer.add_embedding_length(shape["hidden_size"])
    writer.add_feed_forward_length(shape["intermediate_size"])
    writer.add_head_count(shape["num_attention_heads"])
    writer.add_head_count_kv(shape["num_key_value_heads"])
    writer.add_key_length(shape["head_dim"])
    writer.add_value_length(shape["head_dim"])
    writer.add_layer_norm_rms_eps(shape["rms_norm_eps"])
    writer.add_rope_freq_base(shape["rope_theta"])
    writer.add_vocab_size(shape["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    if "num_experts" in shape:
        writer.add_expert_count(shape["num_experts"])
        writer.add_expert_used_count(shape["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(shape["moe_intermediate_size"])


def tensors(shape: dict):
    """Names and shapes; of vectors and routers, which are float32, and of the rest."""
    hidden, head = shape["hidden_size"], shape["head_dim"]
    queries = head * shape["num_attention_heads"]
    keys = head * shape["num_key_value_heads"]
    inner = shape.get("moe_intermediate_size", shape["intermediate_size"])
    experts = (shape["num_experts"],) if "num_experts" in shape else ()
    kind = "_exps" if experts else ""
    yield "token_embd", (shape["vocab_size"], hidden)
    if not shape["tie_word_embeddings"]:
        yield "output", (shape["vocab_size"], hidden)
    yield "output_norm", (hidden,)
    for i in range(shape["num_hidden_layers"]):
        for name, dims in {
            "attn_norm": (hidden,),
            "attn_q": (queries, hidden),
            "attn_k": (keys, hidden),
            "attn_v": (keys, hidden),
            "attn_q_norm": (head,),
            "attn_k_norm": (head,),
            "attn_output": (hidden, queries),
            "ffn_norm": (hidden,),
            f"ffn_gate{kind}": (*experts, inner, hidden),
            f"ffn_up{kind}": (*experts, inner, hidden),
            f"ffn_down{kind}": (*experts, hidden, inner),
        }.items():
            yield f"blk.{i}.{name}", dims
        if experts:
            yield f"blk.{i}.ffn_gate_inp", (*experts, hidden)


def main() -> None:
    from mlx_vulkan.bench.shapes import SHAPES

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    qwen3 = [n for n, s in SHAPES.items() if s["model_type"].startswith("qwen3")]
    parser.add_argument("shape", choices=qwen3)
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    shape = SHAPES[args.shape]
    names = {"qwen3": "qwen3", "qwen3_moe": "qwen3moe"}
    args.file.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(args.file, names[shape["model_type"]])
    metadata(writer, shape)
    all_of = list(tensors(shape))
    # Every matrix is a part of the same blocks: they are written without copies.
    made = blocks(max(int(np.prod(dims)) // 32 for _, dims in all_of))
    rng = np.random.default_rng(7)
    for name, dims in all_of:
        if len(dims) == 1:
            writer.add_tensor(f"{name}.weight", np.ones(dims, np.float32))
        elif name.endswith("gate_inp"):
            router = rng.normal(size=dims).astype(np.float32)
            writer.add_tensor(f"{name}.weight", router)
        else:
            part = made[: int(np.prod(dims)) // 32].view(np.uint8)
            part = part.reshape(*dims[:-1], dims[-1] // 32 * BLOCK.itemsize)
            kind = gguf.GGMLQuantizationType.Q4_0
            writer.add_tensor(f"{name}.weight", part, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
