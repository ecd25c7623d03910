"""The mlx-vulkan command, and what it says of a broken installation."""

import ctypes
import json
import os
import subprocess
import sys

import pytest

from mlx_vulkan import native
from mlx_vulkan.__main__ import main


def command(*words: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mlx_vulkan", *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )


def test_doctor():
    done = command("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("libmlx", "Devices", "driver", "uuid", "heap", "Settings in force"):
        assert word in done.stdout


def test_doctor_json():
    facts = json.loads(command("doctor", "--json").stdout)
    assert facts["vulkan"] and facts["problems"] == []
    assert sum(device["selected"] for device in facts["devices"]) == 1
    assert all(device["driver_id"] for device in facts["devices"])
    assert {"vendor_id", "driver"} <= set(facts["devices"][0])
    assert facts["local_rank"] is None
    assert {"MLX_VK_DEVICE", "MLX_VK_MEMORY"} <= {c["name"] for c in facts["config"]}


def test_doctor_says_which_memory_and_why():
    def memory(**env):
        facts = json.loads(command("doctor", "--json", **env).stdout)
        return next(d["memory"] for d in facts["devices"] if d["selected"])

    assert memory()["largest_array"] > 1 << 20
    assert memory()["model"].startswith(("unified: ", "mirrored: "))
    forced = memory(MLX_VK_MEMORY="discrete")
    assert forced["model"] == "mirrored: MLX_VK_MEMORY asks for it"
    out = command("doctor", MLX_VK_MEMORY="unified").stdout
    assert "unified: MLX_VK_MEMORY asks for it" in out and "largest array" in out


def test_doctor_shows_settings_and_typos():
    out = command("doctor", MLX_VK_FALLBACK="warn", MLX_VK_DEVISE="0").stdout
    assert "MLX_VK_FALLBACK=warn" in out
    assert "MLX_VK_DEVISE is not a setting" in out


def test_doctor_shows_the_cache(tmp_path):
    folder = tmp_path / "cache"
    program = "import mlx.core as mx; mx.eval(mx.exp(mx.ones(8), stream=mx.gpu))"
    env = {**os.environ, "MLX_VK_CACHE": str(folder)}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    done = command("doctor", "--json", MLX_VK_CACHE=str(folder))
    cache = json.loads(done.stdout)["cache"]
    files = list(folder.iterdir())
    assert cache["path"] == str(folder) and cache["writable"] and not cache["why_not"]
    assert cache["entries"] == len(files) >= 2 and cache["limit"] > cache["bytes"]
    assert cache["bytes"] == sum(file.stat().st_size for file in files)
    drivers = {driver["name"]: driver["bytes"] for driver in cache["driver_caches"]}
    assert drivers == {
        file.stem: file.stat().st_size
        for file in files
        if file.name.startswith("driver-")
    }
    out = command("doctor", MLX_VK_CACHE=str(folder)).stdout
    assert str(folder) in out and f"entries   {len(files)} " in out
    assert all(name in out for name in drivers) and drivers


def test_doctor_says_why_nothing_is_cached(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    out = command("doctor", MLX_VK_CACHE=str(file)).stdout
    assert f"writable  no: {file} is not a folder" in out
    assert "off (MLX_VK_CACHE=off" in command("doctor", MLX_VK_CACHE="off").stdout


def test_cache_clears_its_own_files_only(tmp_path):
    kernel, driver = f"spv-{'0a' * 16}.entry", f"driver-{'6d' * 16}-1.entry"
    own = {kernel, driver, f"{kernel}.tmp-12-34-5"}
    others = {"notes", "notes.entry", "spv-1.entry", f"{kernel}.bak"}
    for name in own | others:
        (tmp_path / name).write_text("x")
    link, folder = f"spv-{'0b' * 16}.entry", f"spv-{'0c' * 16}.entry"
    (tmp_path / link).symlink_to(tmp_path / "notes")
    (tmp_path / folder).mkdir()
    (tmp_path / folder / kernel).write_text("x")
    out = command("cache", MLX_VK_CACHE=str(tmp_path)).stdout
    assert f"{tmp_path}: 3 files" in out
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
    assert f"{file}: Not a directory" in said("--clear", MLX_VK_CACHE=str(file))


def test_warm_says_that_nothing_can_be_kept(tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    file = str(tmp_path / "config.json")
    done = command("cache", "warm", str(tmp_path), MLX_VK_CACHE=file)
    assert done.returncode == 1 and f"{file} is not a folder" in done.stdout


TINY = "bench model --shape tiny"
LESS = "is not a whole number of 1 or more"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("bench --json /nonexist/x", "there is no folder /nonexist"),
        ("bench --json {here}", "it is a folder"),
        (f"{TINY} --json {'x' * 300}", "File name too long"),
        ("bench ops --plot x.xyz", "'x.xyz' ends with none of"),
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
        ("profile {here}/3.json", "is no Chrome trace (TypeError"),
        ("profile {here}/unit.json", "is no Chrome trace (KeyError: 'traceEvents')"),
        ("profile {here}/broken.json", "is no Chrome trace (JSONDecodeError"),
        ("profile -- nosuchprogram x", "nosuchprogram was not found"),
        ("profile {here}/plain", "plain is not executable"),
        ("profile --trace /nonexist/t -- true", "there is no folder /nonexist"),
        ("profile --trace {here}/t -- true", "true has written no trace"),
        ("profile --trace {here}/broken.json -- true", "true has written no trace"),
        ("profile --trace {here}/t {here}/3.json", "--trace is for a program"),
        ("cache --clear warm {here}", "goes without --clear"),
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
    row = {"name": "x", "unit": "none", "values": [1.0]}
    (tmp_path / "unit.json").write_text(json.dumps({"results": [row]}))
    (tmp_path / "plain").write_text("x")
    try:
        status = main(words.replace("{here}", str(tmp_path)).split())
    except SystemExit as end:
        status = end.code
    said = capfd.readouterr()
    assert status and sentence in said.out + said.err


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
        ("bench model --shape tiny-llama", {}, "[quantize] "),
        ("bench model no/model", {"HF_HUB_OFFLINE": "1"}, "cannot load no/model ("),
    ],
)
def test_what_mlx_refuses_is_a_sentence(words, env, sentence):
    done = command(*words.split(), **env)
    assert done.returncode == 1 and sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_profile_runs_a_program():
    program = "import mlx.core as mx; mx.eval(mx.exp(mx.ones(8), stream=mx.gpu))"
    done = command("profile", "--", sys.executable, "-c", program)
    assert done.returncode == 0
    assert "unary" in done.stdout + done.stderr


def test_profile_leaves_a_program_its_arguments():
    shows = "import sys; print(sys.argv[1:]); sys.exit(3)"
    words = ("profile", "--", sys.executable, "-c", shows, "a", "--", "b")
    done = command(*words)
    assert done.returncode == 3 and done.stdout == "['a', '--', 'b']\n"
    kills = "import os; os.kill(os.getpid(), 9)"
    assert command("profile", sys.executable, "-c", kills).returncode == 128 + 9


def test_bench_operations(tmp_path):
    file, words = tmp_path / "a.json", ("--seconds", "0.02", "--small")
    done = command("bench", *words, "--json", str(file))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert report["device"] in done.stdout and report["limits"]["copy GB/s"] > 0
    rows = {row["name"]: row for row in report["results"]}
    assert len(rows) == 26 and all(min(r["values"]) > 0 for r in rows.values())
    assert rows["add f32"]["bytes"] == 2 * 512 * 512 * 4
    other = tmp_path / "b.json"  # before `ops`, too, it is written
    done = command("bench", *words, "--json", other, "ops", "--filter", "matmul f")
    assert done.stdout.count("matmul f16") == 2 and "softmax" not in done.stdout
    assert len(json.loads(other.read_text())["results"]) == 2
    assert command("bench", "--filter", "nothing").returncode == 1


def test_bench_model_and_compare(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    words = ("bench", "model", "--shape", "tiny", "-g", "4", "-n", "2", "-p", "7,33")
    done = command(*words, "-b", "1,3", "--json", str(a))
    assert done.returncode == 0, done.stderr
    report = json.loads(a.read_text())
    rows = {row["name"]: row for row in report["results"]}
    assert {"prompt 7", "batch 3, prompt 33", "decode after 33"} <= set(rows)
    assert all(len(r["values"]) == 2 for r in rows.values() if r["unit"] == "tokens/s")
    assert rows["dispatches a step"]["values"][0] > 0
    # The same twice as fast.
    for row in report["results"]:
        row["values"] = [v * 2 for v in row["values"]]
    b.write_text(json.dumps(report))
    done = command("bench", "compare", str(a), str(b))
    assert done.returncode == 0 and done.stdout.count(" 2.00 ") >= 8, done.stdout
    # Commands run in turn; what they leave is what is compared.
    sides = [f"echo {x} >> {tmp_path}/turns; cp {x} {{json}}" for x in (a, b)]
    done = command("bench", "compare", "--rounds", "2", "--filter", "decode", *sides)
    assert done.stdout.count(" 2.00 ") == 4 and "memory" not in done.stdout, done.stdout
    assert (tmp_path / "turns").read_text().split() == [str(a), str(b)] * 2
    done = command("bench", "compare", str(a), "echo broken; exit 3 # {json}")
    assert done.returncode == 1 and "ended with 3" in done.stdout
    assert "broken" in done.stdout
    assert command("bench", "compare", str(a), str(tmp_path)).returncode == 1
    assert "do not quantize" in command(*words, "-b", "2", "--kv-bits", "8").stdout
    # One token is the prompt's: none is decoded.
    done = command(*words, "-g", "1", "-p", "7")
    assert done.returncode == 0 and "decode" not in done.stdout, done.stdout


def test_bench_joins_runs(tmp_path):
    from mlx_vulkan.bench import report

    head = {"device": "d", "driver": "e", "version": "1", "commit": "", "date": "x"}
    files = []
    for i, limit in ((1, 3.0), (2, 5.0), (6, 4.0)):
        rows = [report.Row("x", "us", [i, i, 100.0], "ops", 1e6, 1e6)]
        files.append(str(tmp_path / f"{i}.json"))
        report.save(files[-1], head, rows, {"copy GB/s": limit})
    _, (row,), limits = report.join(files)
    assert row.values == [1, 2, 6] and limits == {"copy GB/s": 5.0}
    picture = tmp_path / "x.png"
    done = command("bench", "roofline", *files, "--markdown", "--plot", str(picture))
    assert "| x | 2 (1, 6) |" in done.stdout, done.stdout + done.stderr
    assert picture.read_bytes()[:4] == b"\x89PNG"
    report.save(files[0], {**head, "driver": "other"}, rows, {})
    done = command("bench", "roofline", *files)
    assert done.returncode == 1 and "of different drivers" in done.stdout


def test_bench_draws(tmp_path):
    from mlx_vulkan.bench import report

    rows = [
        report.Row("x", "us", [3.0, 2.0], f"family {i}", 1e6, 1e6) for i in range(4)
    ]
    head = {"device": "d", "driver": "e", "version": "1", "commit": ""}
    for limits in ({}, {"copy GB/s": 2.0, "matmul bf16 TFLOP/s": 0.1}):
        report.plot(str(tmp_path / "a.png"), head, rows, limits)
        assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    models = [report.Row("decode", "tokens/s", [1.0, 2.0])]
    report.plot(str(tmp_path / "b.png"), head, models, {})
    assert (tmp_path / "b.png").exists()


def test_another_libmlx_is_noticed(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: ctypes.CDLL(None))
    assert not native.is_vulkan()
    assert "is not the Vulkan build" in " ".join(native.problems())
    monkeypatch.setenv("MLX_VK", "0")
    assert "unset it" in " ".join(native.problems())
    assert native.report() == {}
