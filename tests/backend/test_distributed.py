"""Ranks of one host: collectives on GPU streams through shared memory, one
process each (rank_program.py), on the device under test."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("rank_program.py")
ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def run(folder: Path, ranks: int, *words: str, **env: str) -> list:
    return run_command(folder, ranks, [sys.executable, str(PROGRAM), *words], **env)


def run_command(folder: Path, ranks: int, command: list[str], **env: str) -> list:
    """Each rank's exit code, output and errors."""
    hosts = folder / "hosts.json"
    hosts.write_text(json.dumps([[f"127.0.0.1:{p}"] for p in free_ports(ranks)]))
    processes = []
    for rank in range(ranks):
        variables = {
            **os.environ,
            "MLX_VK_HOST_GROUP": "1",
            "MLX_RANK": str(rank),
            "MLX_HOSTFILE": str(hosts),
        }
        processes.append(
            subprocess.Popen(
                command,
                env={**variables, **env},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    results = []
    try:
        for p in processes:
            out, err = p.communicate(timeout=300)
            results.append((p.returncode, out, err))
    finally:
        for p in processes:
            p.kill()
    return results


def succeed(folder: Path, ranks: int, *words: str, **env: str) -> str:
    results = run(folder, ranks, *words, **env)
    for rank, (code, out, err) in enumerate(results):
        assert code == 0, f"rank {rank}: {out}\n{err}"
    return "".join(out for _, out, _ in results)


def errors(results: list, rank: int) -> list[str]:
    lines = results[rank][1].splitlines()
    return [line for line in lines if line.startswith(f"error {rank} ")]


def test_reductions(tmp_path):
    out = succeed(tmp_path, 2, "reductions")
    assert "Ranks exchange data through shared memory" in out


@pytest.mark.parametrize("ranks", [2, 3])
def test_gather_scatter_and_messages(tmp_path, ranks):
    succeed(tmp_path, ranks, "others")


@pytest.mark.parametrize("ranks", [2, 3])
def test_pieces(tmp_path, ranks):
    succeed(tmp_path, ranks, "pieces")


@pytest.mark.parametrize("ranks,count", [(2, 1000), (4, 200)] if FULL else [(2, 200)])
def test_pieces_again_and_again(tmp_path, ranks, count):
    succeed(tmp_path, ranks, "repeated", str(count))


def test_layouts(tmp_path):
    succeed(tmp_path, 2, "layouts")


@pytest.mark.parametrize("ranks", [2, 4] if FULL else [2])
def test_many_in_flight(tmp_path, ranks):
    succeed(tmp_path, ranks, "flight")


@pytest.mark.parametrize("ranks,count", [(2, 1000), (4, 300)] if FULL else [(3, 40)])
def test_random_collectives(tmp_path, ranks, count):
    succeed(tmp_path, ranks, "random", str(count))


def test_a_late_rank_is_waited_for(tmp_path):
    results = run(tmp_path, 2, "late", MLX_VK_TIMEOUT="1")
    assert [code for code, _, _ in results] == [0, 0], results
    assert "rank 0 waits for rank 1 (process" in results[0][2]


def test_a_killed_rank_is_an_error_on_the_others(tmp_path):
    results = run(tmp_path, 3, "killed")
    for rank in (0, 1):
        assert results[rank][0] == 0, results[rank]
        found = errors(results, rank)
        assert len(found) == 2
        for line in found:
            assert "The process of rank 2" in line and "has ended" in line, line
            assert "Restart the job's processes." in line


@pytest.mark.parametrize("after", ["0", "0.02", "0.1"])
def test_a_rank_killed_between_pieces_is_an_error_on_the_others(tmp_path, after):
    results = run(tmp_path, 2, "killed_between", after)
    assert results[0][0] == 0, results[0]
    assert len(errors(results, 0)) == 1 and "has ended" in results[0][1]


def test_ranks_that_differ_are_told(tmp_path):
    results = run(tmp_path, 2, "differ")
    assert [code for code, _, _ in results] == [0, 0], results
    lines = errors(results, 0) + errors(results, 1)
    assert len(lines) == 2
    # Whichever looked first.
    said = ("at all_sum of 20 bytes where rank 1 is at one of 24",)
    said += ("at all_sum of 24 bytes where rank 0 is at one of 20",)
    assert any(text in line for line in lines for text in said), lines


def test_ranks_that_differ_in_pieces_are_told(tmp_path):
    results = run(tmp_path, 2, "differ_in_pieces")
    # The first to look tells both, so that rank 0 may fail before its second.
    said = "".join(err + out for _, out, err in results)
    assert "Ranks must call the same" in said, results
    assert "of 92160 bytes" in said and "of 138240 bytes" in said, results


def test_messages_that_differ_are_told(tmp_path):
    results = run(tmp_path, 2, "differ_in_messages")
    assert results[1][0] == 0, results
    (line,) = errors(results, 1)
    assert "a message of 65536 bytes where rank 0 is at one of 98304" in line, line


def test_bad_calls_leave_the_group_usable(tmp_path):
    succeed(tmp_path, 2, "bad")


def test_without_it_the_ring_works(tmp_path):
    results = run(tmp_path, 2, "late", MLX_VK_HOST_GROUP="0")
    assert [code for code, _, _ in results] == [0, 0], results
    assert "MLX's ring" not in results[0][2]  # as asked for


def test_one_of_several_hosts_or_without_a_device_is_told(tmp_path):
    hosts = tmp_path / "hosts.json"
    hosts.write_text(json.dumps([[f"127.0.0.1:{p}"] for p in free_ports(2)]))
    text = (
        "import mlx.core as mx\n"
        "g = mx.distributed.init(strict=True, backend='ring')\n"
        "mx.set_default_device(mx.cpu)\n"
        "y = mx.distributed.all_sum(mx.ones(3), group=g)\n"
        "assert y[0].item() == 2\n"
    )
    processes = []
    for rank in range(2):
        env = {
            **os.environ,
            "MLX_VK_HOST_GROUP": "1",
            "MLX_RANK": str(rank),
            "MLX_HOSTFILE": str(hosts),
        }
        if rank == 1:
            env["MLX_VK_DEVICE"] = "no such device"
        command = [sys.executable, "-c", text]
        processes.append(
            subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        )
    said = [p.communicate(timeout=120)[1] for p in processes]
    assert [p.returncode for p in processes] == [0, 0], said
    assert "over TCP (MLX's ring), as rank 1 cannot: " in said[0]
    assert "MLX_VK_DEVICE=no such device" in said[0]


if FULL:

    def test_the_tests_of_mlx_for_its_ring(tmp_path):
        build = Path(os.environ.get("MLXVK_BUILD", ROOT / "build"))
        source = Path((build / "mlx_source_dir.txt").read_text().strip())
        tests = source / "python" / "tests"
        command = [sys.executable, "-m", "unittest", "-v", "ring_test_distributed"]
        results = run_command(tmp_path, 2, command, PYTHONPATH=str(tests))
        for rank, (code, _, err) in enumerate(results):
            assert code == 0, f"rank {rank}: {err}"
            assert "OK" in err
