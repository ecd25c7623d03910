"""`mlx-vulkan fit`: sizes of models, and what fits a card."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import command
from mlx_vulkan import fit
from mlx_vulkan.bench import shapes

ROOT = Path(__file__).resolve().parents[2]


def sizes(name: str, **more) -> fit.Sizes:
    return fit.sizes_of(*shapes.lazy(name, 4, 32, "bfloat16", **more))


def test_sizes_are_those_of_the_shape():
    found = sizes("tiny")
    shape = shapes.SHAPES["tiny"]
    kv_heads, dim = shape["num_key_value_heads"], shape["head_dim"]
    assert found.per_token == shape["num_hidden_layers"] * 2 * kv_heads * dim * 2
    assert found.fixed == found.experts == 0
    assert found.context == shape["max_position_embeddings"]
    model, _ = shapes.make("tiny", 4, 32, "bfloat16")
    from mlx.utils import tree_flatten

    assert found.weights == sum(p.nbytes for _, p in tree_flatten(model.parameters()))


def test_experts_and_windows_are_told_apart():
    experts = sizes("tiny-qwen3_moe")
    assert 0 < experts.experts < experts.weights
    # Two of three layers have windows, whose caches do not grow.
    windows = sizes("tiny-gemma3_text")
    assert windows.fixed > 0
    assert (
        windows.per_token
        == sizes("tiny-gemma3_text", sliding_window=1 << 20).per_token / 3
    )


def card(budget: float, apart: bool = False) -> dict:
    return {"name": "a card", "size": budget, "budget": budget, "apart": apart}


def test_what_is_left_of_a_card():
    model = fit.Sizes(4 << 30, 0, 0, 1024.0, 0.0, 1 << 30, 1 << 20)
    assert fit.fit(model, card(5 << 30)).tokens == 0
    found = fit.fit(model, card((5 << 30) + 100 * 1024))
    assert (found.tokens, found.chats, found.prompts) == (100, 1, 1)
    roomy = fit.fit(model, card(1 << 40))
    assert (roomy.tokens, roomy.chats, roomy.prompts) == (1 << 20, 32, 8)
    # All that a server may take at once is in what is left.
    some = fit.fit(model, card(8 << 30))
    chats = some.chats * model.cache(fit.CHAT)
    assert chats + some.kept + (some.prompts - 1) * model.step <= some.free


@pytest.fixture(scope="module")
def demo_model() -> Path:
    sys.path.insert(0, str(ROOT / "tools"))
    import demo

    return demo.demo_model()


def test_the_command(demo_model):
    done = command("fit", demo_model, "--card", "8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("YES: ") and "8,192 tokens" in done.stdout
    assert "mlx_lm.server --model" in done.stdout
    done = command("fit", demo_model, "--card", "8", "--json")
    weights = sum(f.stat().st_size for f in demo_model.glob("*.safetensors"))
    assert json.loads(done.stdout)["weights"] == pytest.approx(weights, rel=0.01)
    here = command("fit", demo_model)
    assert here.returncode == 0 and "RAM" in here.stdout, here.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody/no-such-model",), "is not in the hub's cache"),
        (("/nonexistent",), "is not a folder"),
        (("x", "--card", "0"), "--card"),
    ],
)
def test_what_is_no_model_is_told(words, said, tmp_path):
    done = command("fit", *words, HF_HUB_CACHE=str(tmp_path))
    assert done.returncode in (1, 2) and said in done.stderr


def test_what_does_not_fit_is_in_ram_or_told(capsys):
    model = fit.Sizes(40 << 30, 30 << 30, 64, 1024.0, 0.0, 1 << 30, None)
    # A card with memory of its own keeps a sixth free; experts leave it first.
    memory = card(24 << 30, apart=True)
    found = fit.fit(model, memory)
    assert found.host == 20 << 30 and found.free == 3 << 30
    # A third of the experts has slots, more than 16; 4 GiB more of cache are slow.
    assert found.stacks == 30 << 30
    assert found.most - found.tokens == (4 << 30) // 1024
    fit.show("big", model, memory, found)
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("YES: big runs on a card with 21.5 GB of its experts in RAM")
    small = card(10 << 30, apart=True)
    assert "of its weights" in fit.verdict("big", model, small, fit.fit(model, small))
    shared = card(24 << 30)
    fit.show("big", model, shared, fit.fit(model, shared))
    said = capsys.readouterr().out
    assert said.startswith("NO: big lacks 18.3 GB") and "Settings" not in said


def test_a_cache_may_be_in_ram_alone():
    model = fit.Sizes(8 << 30, 0, 0, 1024.0, 0.0, 2 << 30, None)
    found = fit.fit(model, card(9 << 30, apart=True))
    # A third of the card in RAM, less the half GiB that weights and a step exceed it.
    assert found.tokens == 0 and found.most == ((3 << 30) - (1 << 29)) // 1024
    assert "much slower" in fit.verdict("big", model, card(9 << 30), found)
    few = fit.Sizes(40 << 30, 38 << 30, 16, 1024.0, 0.0, 1 << 30, None)
    assert fit.fit(few, card(24 << 30, apart=True)).stacks == 0


def test_the_table_of_the_documents():
    script = ROOT / "tools" / "gen_fit.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True)
    assert done.returncode == 0, done.stderr
