"""The mlx-vulkan command: arguments, exit codes, cache, profile."""

import ctypes
import json
import sys

import pytest

from commands import command, python
from mlx_vulkan import native
from mlx_vulkan.__main__ import main


def test_cache_clears_its_own_files_only(tmp_path):
    kernel, driver = f"spv-{'0a' * 16}.entry", f"driver-{'6d' * 16}-1.entry"
    recent = f"recent-{'6d' * 16}.entry"
    own = {kernel, driver, recent, f"{kernel}.tmp-12-34-5"}
    others = {"notes", "notes.entry", "spv-1.entry", f"{kernel}.bak"}
    for name in own | others:
        (tmp_path / name).write_text("x")
    link, folder = f"spv-{'0b' * 16}.entry", f"spv-{'0c' * 16}.entry"
    (tmp_path / link).symlink_to(tmp_path / "notes")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / kernel).write_text("x")
    out = command("cache", MLX_VK_CACHE=str(tmp_path)).stdout
    assert f"{tmp_path}: 4 files" in out
    assert command("cache", "--clear", MLX_VK_CACHE=str(tmp_path)).returncode == 0
    assert {file.name for file in tmp_path.iterdir()} == others | {link, folder}
    assert (tmp_path / folder / kernel).exists()


@pytest.mark.parametrize("vulkan", ["1", "0"])
def test_cache_is_where_the_library_has_it(tmp_path, vulkan):
    def said(words="--path", **env):
        return command("cache", words, MLX_VK=vulkan, **env).stdout

    assert "The kernel cache is off" in said(MLX_VK_CACHE="")
    assert "The kernel cache is off" in said(MLX_VK_CACHE="off")
    assert said(MLX_VK_CACHE=str(tmp_path)) == f"{tmp_path}\n"
    file = tmp_path / "file"
    file.write_text("x")
    done = command("cache", "--clear", MLX_VK=vulkan, MLX_VK_CACHE=str(file))
    assert done.returncode == 1 and f"{file}: Not a directory" in done.stderr


def test_warm_says_that_nothing_can_be_kept(tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    file = str(tmp_path / "config.json")
    done = command("cache", "warm", str(tmp_path), MLX_VK_CACHE=file)
    assert done.returncode == 1 and f"{file} is not a folder" in done.stderr


TINY = "bench model --shape tiny"
LESS = "is not a whole number of 1 or more"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("bench --json /nonexist/x", "there is no folder /nonexist"),
        ("bench --json {here}", "it is a folder"),
        (f"{TINY} --json {'x' * 300}", "File name too long"),
        ("bench ops --plot x.xyz", "'x.xyz' is not a picture"),
        ("bench roofline x.json --plot /nonexist/x.png", "there is no folder"),
        ("bench --seconds -1", "'-1' is not a number of 0 or more"),
        ("bench --seconds nan", "'nan' is not a number"),
        *((f"{TINY} {option} 0", LESS) for option in ("-n", "-g", "-p", "-b")),
        (f"{TINY} -p 5,x", LESS),
        (f"{TINY} --dtype foo", "choose from"),
        (f"{TINY} --bits 7", "choose from"),
        (f"{TINY} --kv-bits 7", "choose from"),
        (f"{TINY} --group-size 33", "choose from"),
        ("bench model /nonexist", "/nonexist is not a folder"),
        ("bench model {here}", "has no config.json"),
        ("bench compare --rounds 0 a b", LESS),
        ("bench compare {here}/3.json {here}/3.json", "3.json: AttributeError"),
        ("bench compare {here}/unit.json {here}/unit.json", "unit.json: KeyError"),
        ("bench roofline {here}/unit.json", "unit.json: KeyError"),
        ("profile /nonexist.json", "/nonexist.json cannot be read"),
        ("profile {here}/3.json", "is not a Chrome trace (TypeError"),
        ("profile {here}/unit.json", "is not a Chrome trace (KeyError: 'traceEvents')"),
        ("profile {here}/broken.json", "is not a Chrome trace (JSONDecodeError"),
        ("profile -- nosuchprogram x", "nosuchprogram was not found"),
        ("profile {here}/plain", "plain is not executable"),
        ("profile --trace /nonexist/t -- true", "there is no folder /nonexist"),
        ("profile --trace {here}/t -- true", "true has written no trace"),
        ("profile --trace {here}/broken.json -- true", "true has written no trace"),
        ("profile --trace {here}/t {here}/3.json", "--trace is for a program"),
        ("profile {here}/empty.json", "has no events"),
        ("profile", "Give a trace"),
        ("run", "Give a program"),
        ("run -- nosuchprogram x", "nosuchprogram was not found"),
        ("cache --clear warm {here}", "takes neither --clear"),
        ("cache --clear --path", "not allowed with"),
        ("selftest --seed -1", "'-1' is not a whole number from 0"),
        ("selftest --limit nan", "'nan' is not a number"),
        ("selftest --jobs 0", LESS),
    ],
)
def test_bad_input_is_told_first(words, sentence, tmp_path, monkeypatch, capfd):
    def timed(*_):
        raise AssertionError("timed before the arguments were looked at")

    monkeypatch.setattr("mlx_vulkan.bench.ops.samples", timed)
    monkeypatch.setattr("mlx_vulkan.bench.model.time_cell", timed)
    (tmp_path / "3.json").write_text("3")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    row = {"name": "x", "unit": "none", "values": [1.0]}
    (tmp_path / "unit.json").write_text(json.dumps({"results": [row]}))
    (tmp_path / "plain").write_text("x")
    try:
        status = main(words.replace("{here}", str(tmp_path)).split())
    except SystemExit as end:
        status = end.code
    said = capfd.readouterr()
    assert status and sentence in said.err and said.out == ""
    assert said.err.count(sentence) == 1


def test_bench_says_at_once_that_it_cannot_draw(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.backend_bases", None)
    with pytest.raises(SystemExit):
        main(["bench", "--plot", "x.png"])
    assert "pip install matplotlib" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "env", "sentence"),
    [
        ("bench", {"MLX_VK_DEVICE": "nosuch"}, "MLX_VK_DEVICE=nosuch names no device"),
        ("coverage", {"MLX_VK_DEVICE": "nosuch"}, "names no device"),
        ("bench model --shape tiny-llama --group-size 128", {}, "[quantize] "),
        ("bench model no/model", {"HF_HUB_OFFLINE": "1"}, "cannot load no/model ("),
    ],
)
def test_what_mlx_refuses_is_a_sentence(words, env, sentence):
    done = command(*words.split(), **env)
    assert done.returncode == 1 and sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_profile_runs_a_program():
    program = "import mlx.core as mx; mx.eval(mx.exp(mx.ones(8), stream=mx.gpu))"
    done = command("profile", "--", sys.executable, "-c", program)
    assert done.returncode == 0
    assert "unary" in done.stdout + done.stderr


def test_profile_without_a_device():
    for words in (("--", "true"), ("--trace", "/tmp/t.json", "--", "true")):
        done = command("profile", *words, VK_DRIVER_FILES="/nonexistent")
        assert done.returncode == 1 and done.stdout == ""
        assert "There is no Vulkan device: no Vulkan driver is" in done.stderr
        assert "rewrites" not in done.stderr


def test_profile_names_its_trace_and_shows_no_empty_rows(tmp_path):
    program = "import mlx.core as mx; mx.eval(mx.exp(mx.ones(8), stream=mx.gpu))"
    done = command("profile", "--", sys.executable, "-c", program)
    assert "rewrites" not in done.stderr and done.returncode == 0
    trace = tmp_path / "t.json"
    words = ("profile", "--trace", trace, "--", sys.executable, "-c", program)
    done = command(*words)
    assert done.returncode == 0 and f"trace: {trace}" in done.stdout
    assert "unary" in done.stdout


def test_profile_leaves_a_program_its_arguments():
    shows = "import sys; print(sys.argv[1:]); sys.exit(3)"
    words = ("profile", "--", sys.executable, "-c", shows, "a", "--", "b")
    done = command(*words)
    assert done.returncode == 3 and done.stdout == "['a', '--', 'b']\n"
    kills = "import os; os.kill(os.getpid(), 9)"
    assert command("profile", sys.executable, "-c", kills).returncode == 128 + 9


def make_model(folder, shape: str) -> None:
    """A folder of mlx-lm's format."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    from mlx_vulkan.bench import shapes

    folder.mkdir()
    model, config = shapes.make(shape, 4, None, "bfloat16")
    weights = dict(tree_flatten(model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    (folder / "config.json").write_text(json.dumps(config))


FULL_DISK = """
import resource, sys
from mlx_vulkan.__main__ import main
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20480, most))
sys.exit(main())
"""


def test_warm_tells_what_a_full_disk_did_not_store(tmp_path):
    make_model(tmp_path / "model", "tiny")
    cache = tmp_path / "cache"
    words = ("cache", "warm", tmp_path / "model")
    done = python("-c", FULL_DISK, *words, MLX_VK_CACHE=str(cache))
    assert done.returncode == 1, done.stdout + done.stderr
    compiled = int(done.stdout.split(" of ")[0])
    stored = int(done.stdout.split("; ")[1].split()[0])
    assert 0 < stored < compiled and str(cache) in done.stdout
    assert f"{compiled - stored} of {compiled} kernels could not be" in done.stderr
    assert "File too large" in done.stderr
    kept = [file for file in cache.iterdir() if file.name.startswith("spv-")]
    assert len(kept) == stored


def test_warm_takes_names_of_the_hub(tmp_path):
    words = ("cache", "warm", "no/model")
    done = command(*words, HF_HUB_OFFLINE="1", MLX_VK_CACHE=str(tmp_path))
    assert done.returncode == 1 and "cannot load no/model (" in done.stderr


COMMANDS = ["", "doctor", "selftest", "run", "bench", "bench ops", "bench model"]
COMMANDS += [
    "bench compare",
    "bench roofline",
    "tune",
    "profile",
    "cache",
    "cache warm",
]


@pytest.mark.parametrize("words", [*COMMANDS, "coverage"])
def test_help_has_a_sentence_examples_and_defaults(words, capsys):
    with pytest.raises(SystemExit) as end:
        main([*words.split(), "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0 and f"  mlx-vulkan {words}".rstrip() in text
    first = text.split("\n\n")[1].split("\n")[0]
    assert first[0].isupper() and first.endswith((".", "run in turn."))
    assert max(map(len, text.splitlines())) <= 100
    # Every option with a value says its default, where it has one.
    for part in text.split("\n  -")[1:]:
        option, _, told = part.partition("  ")
        if words == "bench model" and option.split()[-1].startswith(("N", "{")):
            assert "(default: " in " ".join(told.split()), part


def test_another_libmlx_is_noticed(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: ctypes.CDLL(None))
    assert not native.is_vulkan()
    assert "is not the Vulkan build" in " ".join(native.problems())
    monkeypatch.setenv("MLX_VK", "0")
    assert "unset it" in " ".join(native.problems())
    assert native.report() == {}
