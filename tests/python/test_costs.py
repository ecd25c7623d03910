"""The cost tier without drivers: assembly, the model, and what is compared."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import driver_lab  # noqa: E402
from cost import isa, model, report, tier, validate  # noqa: E402
from cost.chips import HARDWARE  # noqa: E402

# Two loops over tiles, one of them with a test; a loop of products in the first.
RADV = """BB0:
\ts_mov_b32 s0, 0                 ; 00
\tglobal_load_b128 v[0:3], v4, s[2:3] ; 00
BB1:
\tds_store_b128 v5, v[0:3]        ; 00
\ts_barrier                       ; 00
BB2:
\tds_load_2addr_b32 v[0:1], v5    ; 00
\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_mul_f32 v4, v5, v6 ; 00
\tv_fma_f32 v1, v2, v3, v1        ; 00
\tv_exp_f32 v1, v1                ; 00
\tv_mul_lo_u32 v1, v1, v2         ; 00
\ts_cbranch_scc1 BB2              ; 00
BB3:
\tv_add_nc_u32 v5, 4, v5          ; 00
\ts_cbranch_scc0 BB1              ; 00
BB4:
\tglobal_store_b16 v4, v0, s[2:3] ; 00
\ts_endpgm                        ; 00
"""


def test_radv_loops_and_counts():
    program = isa.parse_amd(RADV)
    (outer,) = program.loops
    (inner,) = outer.inner
    assert [program.blocks[i].label for i in sorted(outer.direct())] == ["BB1", "BB3"]
    counts = program.count_loop(inner)
    assert (counts["fma"], counts["macs"]) == (2, 2)
    assert (counts["math"], counts["slow"]) == (1, 1)
    assert (counts["shared"], counts["shared_bytes"]) == (1, 8)
    everything = program.count(range(len(program.blocks)))
    assert (everything["load_bytes"], everything["store_bytes"]) == (16, 2)
    assert everything["barrier"] == 1


def test_matrices_have_the_shape_of_their_name():
    counts = Counter()
    isa.count_amd("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", counts)
    assert (counts["matrix"], counts["matrix_macs"]) == (1, 4096)
    isa.count_nak("r0..4", "hmma.m16n8k16.f32", counts)
    assert (counts["matrix"], counts["matrix_macs"]) == (2, 4096 + 2048)
    isa.count_gen("dpas", ".8x8", 16, 16, "", counts)
    assert (counts["matrix"], counts["matrix_macs"]) == (3, 4096 + 2 * 2048)


NAK = """block.u 0 L0 [] -> {
      r0       = ld.global.a64.strong.gpu.b128 [r2..4], pT   // delay=1
} -> [1]
block 1 L1 [0, 3] -> {
                 bra !up0 L3                                 // delay=1
} -> [2, 4]
block 2 L2 [1] -> {
      r1       = ffma r1 r2 r3                               // delay=1
      ur1      = iadd3 ur1 rZ rZ                             // delay=1
      r1       = mov r2                                      // delay=1
@!p0  r4       = ld.shared.strong.cta.b32 [r5]               // delay=1
} -> [3]
block 3 L4 [2] -> {
                 bra pT L1                                   // delay=1
} -> [1]
block 4 L3 [1] -> {
                 exit                                        // delay=1
} -> []
"""


def test_nak_leaves_what_follows_a_loop_out():
    program = isa.parse_nak(NAK)
    (loop,) = program.loops
    assert loop.blocks == {1, 2, 3}
    counts = program.count_loop(loop)
    assert (counts["fma"], counts["scalar"], counts["copy"]) == (1, 1, 1)
    assert (counts["shared"], counts["shared_bytes"], counts["load"]) == (1, 4, 0)


GEN = """
mov(16)         g12<1>UD        g0.1<0,1,0>UD           { align1 1H };

LABEL1:
mad(16)         g12<1>F         g13<8,8,1>F     g14<8,8,1>F     g15<1,1,1>F { align1 };
mul(8)          g12<1>D         g13<8,8,1>D     g14<0,1,0>UW    { align1 1Q };
add(1)          g2<1>D          g2<0,1,0>D      1D              { align1 WE_all 1N };
send(16)        g10UD           g11UD           nullUD          0x0
                slm MsgDesc: ( load, a32, d32, V4, x dst_len = 4 )  { };
send(16)        nullUD          g11UD           g12UD           0x0
                ugm MsgDesc: ( store, a64, d16u32, V1, x dst_len = 0 )  { };
math.exp(16)    g12<1>F         g13<8,8,1>F     null<8,8,1>F    { align1 1H };
while(16)       JIP:  LABEL1                                    { align1 1H };
mov(16)         g12<1>F         g0.1<0,1,0>F            { align1 1H };
"""


def test_gen_counts_narrow_instructions_in_part():
    program = isa.parse_gen(GEN, 16)
    (loop,) = program.loops
    counts = program.count_loop(loop)
    assert (counts["fma"], counts["macs"], counts["int"]) == (1, 1, 0.5)
    assert (counts["scalar"], counts["math"]) == (1, 1)
    assert (counts["shared_bytes"], counts["store_bytes"]) == (16, 2)


def test_gen_messages():
    wanted = {
        "slm MsgDesc: ( load, a32, d32, V4, x )": ("shared", 16),
        "ugm MsgDesc: ( load, a64, d16u32, V2, x )": ("load", 4),
        "ugm MsgDesc: ( load, a64, d32, V16, transpose, x )": ("load", 4),
        "hdc1 MsgDesc: (DC A64 untyped surface read, Surface = 253, Mask = 0xc)": (
            "load",
            8,
        ),
        "hdc1 MsgDesc: (untyped surface write, Surface = 254, Mask = 0xe)": (
            "shared",
            4,
        ),
    }
    for line, (kind, size) in wanted.items():
        counts = Counter()
        isa.count_send("   " + line, 16, 16, counts)
        assert counts == {kind: 1, kind + "_bytes": size}
    counts = Counter()
    isa.count_send("   gateway MsgDesc: (barrier msg)  mlen 1", 16, 16, counts)
    assert counts == {"barrier": 1}


IR3 = """; a comment
l1:
(rpt2)mad.f32 r0.x, (r)r1.x, (r)r2.x, (r)r0.x
ldl.u32 r1.x, l[r2.x], 4
(ss)(rpt3)nop
add.u r0.x, r1.x, r2.x
br !p0.x, #l1
end
"""


def test_ir3_repeats():
    (loop,) = (program := isa.parse_ir3(IR3)).loops
    counts = program.count_loop(loop)
    assert (counts["fma"], counts["macs"], counts["int"]) == (3, 3, 1)
    assert counts["shared_bytes"] == 16


AGX = """block0 {
   r1 = mov_imm #0x0
}

block0 {
   r1 = mov_imm #0x0
   r0...r3 = device_load u0:u1, #5, xyzw, #0x0, slot 0
} -> block1

block1 {
   $r37 = ffma $r61, $r64, r37
   $r64 = local_load r64l, #0, x, #0x0
   r5 = rcp r5
} -> block1 block2  from block0 block1

block2 {
   stop
}

block0 {
   stop
}
"""


def test_agx_takes_the_last_form_of_the_kernel():
    program = isa.parse_agx(AGX)
    (loop,) = program.loops
    counts = program.count_loop(loop)
    assert (counts["fma"], counts["shared_bytes"], counts["math"]) == (1, 4, 1)
    assert program.count([0])["load_bytes"] == 16


def test_an_if_with_the_same_loads_on_both_sides_runs_the_shorter():
    side = "\tglobal_load_b32 v0, v1, s[2:3] ; 00\n"
    text = "BB0:\n\ts_cbranch_scc0 BB2 ; 00\nBB1:\n" + side + "\ts_branch BB3 ; 00\n"
    text += "BB2:\n" + side + "\tv_add_nc_u32 v0, v0, v1 ; 00\n" * 5
    text += "BB3:\n\ts_endpgm ; 00\n"
    assert isa.parse_amd(text).skipped == {3}
    only_one = text.replace(side, "", 1)
    assert isa.parse_amd(only_one).skipped == set()


def test_an_if_that_only_converts_runs_the_shorter_side():
    move = "mov(16)         g12<1>UD        g0.1<0,1,0>UD    { align1 1H };\n"
    send = (
        "send(16)        g10UD           g11UD           nullUD          0x0\n"
        "                slm MsgDesc: ( load, a32, d32, V4, x dst_len = 4 )  { };\n"
    )
    text = "(+f0.0) if(16)  JIP:  LABEL1     UIP:  LABEL0     { align1 1H };\n" + move
    text += "else(16)        JIP:  LABEL0     UIP:  LABEL0     { align1 1H };\n\n"
    text += "LABEL1:\n" + move * 3 + "\nLABEL0:\nendif(16)   JIP:  LABEL2 { };\n"
    program = isa.parse_gen(text, 16)
    assert program.count(range(len(program.blocks)))["int"] == 1
    program = isa.parse_gen(text.replace(move * 3, send + move * 3), 16)
    assert program.count(range(len(program.blocks)))["int"] == 4


def test_what_runs_rarely_is_left_out():
    text = "BB0:\n\ts_cbranch_scc0 BB2 ; 00\nBB1:\n"
    text += "\tv_mul_f32 v0, v1, v2 ; 00\n" * isa.RARE
    text += "BB2:\n\ts_endpgm ; 00\n"
    assert isa.parse_amd(text).skipped == {2}
    loads = text.replace("BB2:", "\tglobal_load_b32 v0, v1, s[2:3] ; 00\nBB2:")
    assert isa.parse_amd(loads).skipped == set()


def work(**changes):
    usual = dict(groups=192, workgroup=128, subgroup=32, bytes=1e6, flops=1e9)
    return model.Work(**(usual | changes))


def test_inner_loops_make_what_a_step_needs():
    # 8 steps of 64 products of a lane; the inner loop has two each time.
    program = isa.parse_amd(RADV)
    code = model.code_of(program, work(steps=8, lane_macs=64))
    assert code.step["fma"] == pytest.approx(64)
    assert code.step["int"] == 1  # of the loop around it
    assert code.once["store"] == 1


def test_an_unrolled_loop_is_several_steps():
    line = "\tv_fma_f32 v1, v2, v3, v1 ; 00\n"
    text = "BB0:\n" + line * 64 + "\ts_cbranch_scc1 BB0 ; 00\nBB1:\n\ts_endpgm ; 00\n"
    code = model.code_of(isa.parse_amd(text), work(steps=8, lane_macs=16))
    assert code.step["fma"] == 16


def test_bandwidth_bounds_what_has_little_to_do():
    chip = HARDWARE["navi31"]
    found = model.estimate(work(bytes=960e6), model.Code(), chip, 8)
    assert found.bound == "memory"
    assert found.us == pytest.approx(1000)
    assert found.bandwidth == 1


def test_products_alone_reach_the_limit():
    chip = HARDWARE["navi31"]
    macs = 8 * 4096.0  # of a subgroup and step, a lane's 1,024
    step = Counter(matrix=8, matrix_macs=macs)
    groups, steps = 96, 1000
    flops = groups * 4 * steps * macs * 2
    w = work(groups=groups, flops=flops, steps=steps, lane_macs=macs / 32)
    found = model.estimate(w, model.Code(step), chip, 16)
    assert found.rate == pytest.approx(1, abs=0.01)
    # One workgroup more than units: half of them wait.
    w.groups += 1
    found = model.estimate(w, model.Code(step), chip, 16)
    assert found.rounds == 2
    assert found.filled == pytest.approx(97 / 192)
    assert found.rate == pytest.approx(0.5, abs=0.01)


def test_other_instructions_take_their_share():
    chip = HARDWARE["navi31"]
    macs = 8 * 4096.0
    step = Counter(matrix=8, matrix_macs=macs, int=256)  # 256 cycles each
    flops = 96 * 4 * 1000 * macs * 2
    w = work(groups=96, flops=flops, steps=1000, lane_macs=macs / 32)
    found = model.estimate(w, model.Code(step), chip, 16)
    assert found.rate == pytest.approx(0.5, abs=0.01)
    assert found.matrix_share == pytest.approx(0.5)
    assert found.bound == "valu"


def test_intel_issues_integers_beside_matrices():
    macs = 16 * 2048.0
    step = Counter(matrix=16, matrix_macs=macs, int=100)
    flops = 20 * 8 * 1000 * macs * 2
    w = work(groups=20, subgroup=16, flops=flops, steps=1000, lane_macs=macs / 16)
    alone = model.estimate(w, model.Code(step), HARDWARE["bmg"], 1)
    many = model.estimate(w, model.Code(step), HARDWARE["bmg"], 8)
    assert alone.us >= many.us


def test_few_subgroups_wait_for_loads():
    step = Counter(load=1, load_bytes=16, fma=4, macs=4)
    w = work(groups=96, workgroup=64, subgroup=64, bytes=1, steps=100, lane_macs=4)
    chip = HARDWARE["navi31"]
    found = model.estimate(w, model.Code(step), chip, 16)
    assert found.bound == "latency"
    assert found.us >= 100 * chip.latency_ns / 1e3


def test_limits_are_those_of_the_data_sheets():
    # RX 7900 XTX 123 TFLOPS, 9070 XT 195, A770M 108, B580 109, M1 2.6.
    wanted = {"navi31": 123, "gfx1201": 195, "dg2": 108, "bmg": 109, "m1": 2.6}
    for name, tflops in wanted.items():
        assert HARDWARE[name].tflops == pytest.approx(tflops, rel=0.02)


def test_every_chip_of_the_lab_has_constants():
    assert set(driver_lab.CHIPS) - {"nvk"} <= set(HARDWARE)  # which is no product


def line(kernel="quant/qmv", us=1.0, name="gate, up"):
    return tier.Row(
        *("8B", "decode", name, kernel + "{T=bf16 BM=64}", 36, 10, 128, 64, 1e6, 1e6),
        us=us,
        bound="memory",
        bandwidth=0.5,
    )


def test_a_changed_plan_is_shown():
    before = report.kept([tier.Chip("navi31", "RADV", 96, [line()])])
    assert report.differences(before, before) == []
    wider = report.kept([tier.Chip("navi31", "RADV", 96, [line("quant/qmm_coopmat")])])
    minus, plus = report.differences(before, wider)
    assert minus.startswith("navi31 - ") and "quant/qmv BM64" in minus
    assert plus.startswith("navi31 + ") and "quant/qmm_coopmat BM64" in plus
    both = before + report.kept([tier.Chip("m1", "Honeykrisp", 8, [line()])])
    assert report.differences(both, before) == []


def test_the_committed_rows_are_of_known_chips():
    found = report.sections((ROOT / "tests/drivers/costs.txt").read_text("utf-8"))
    assert set(found) <= set(HARDWARE)
    assert all(len(lines) > 10 for lines in found.values())


def test_rank_correlation():
    assert validate.ranks([3.0, 1.0, 3.0]) == [2.5, 1.0, 2.5]
    assert validate.rank_correlation([1, 2, 3, 4], [10, 20, 25, 90]) == 1
    assert validate.rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == -1


def test_the_estimates_order_the_stored_times():
    predicted = json.loads(validate.PREDICTED.read_text("utf-8"))
    found = validate.compare(predicted, validate.stored())
    assert len(found["names"]) >= 30
    assert found["correlation"] > 0.8
