"""Calls packages whose archives have no tests, so that they make their Metal kernels.

    python tests/packages/calls.py PACKAGE      by corpus.py

recorder.py takes the kernels. Sizes are small, and nothing looks at what comes out.
"""

import contextlib
import itertools
import os
import sys

import recorder  # noqa: F401, packages make kernels when they are imported

# isort: split
import mlx.core as mx
import numpy as np


def dflash_mlx():
    import dflash_mlx.kernels as k
    import dflash_mlx.verify_qmm as verify

    steps, heads, wide = 4, 4, 64
    q, key = (mx.ones((1, steps, 2, wide)) for _ in "qk")
    v, state = mx.ones((1, steps, heads, wide)), mx.ones((1, heads, wide, wide))
    beta, parents = mx.ones((1, steps, heads)), mx.zeros((1, steps), mx.int32)
    mask = mx.ones((1, steps), mx.bool_)
    for g in (mx.ones((1, steps, heads)), mx.ones((1, steps, heads, wide))):
        for m in (None, mask):
            k.gated_delta_kernel_with_tape(q, key, v, g, beta, state, m)
            k.tape_replay_kernel(v, key, g, state, m)
        k.gated_delta_tree_kernel(q, key, v, g, beta, state, parents)
        k.gated_delta_tree_tape_kernel(q, key, v, g, beta, state, parents)
    paths = mx.zeros((1, steps, 4), mx.int32)
    for bias in (None, mx.ones(wide)):
        prefix, weight = mx.ones((1, 3, wide)), mx.ones((wide, 4, 1))
        k.tree_depthwise_conv1d(mx.ones((1, steps, wide)), prefix, weight, bias, paths)
    os.environ["DFLASH_VERIFY_QMM"] = "1"
    groups, types = (32, 64, 128), (mx.bfloat16, mx.float16)
    for group, dtype in itertools.product(groups, types):
        for rows, columns, inner in ((4, 64, 256), (4, 4096, 256), (16, 64, 256)):
            for bits in (4, 8):
                w = mx.quantize(mx.ones((columns, inner), dtype), group, bits)
                x = mx.ones((rows, inner), dtype)
                verify.verify_matmul(x, *w, group_size=group, bits=bits)
    for name in ("combo_ktmpl", "super_tree_fp16_ktmpl", "mma2big", "mma2big_pipe"):
        os.environ["DFLASH_VERIFY_VARIANT"] = name
        for bits in (4, 8):
            w = mx.quantize(mx.ones((64, 256), mx.bfloat16), 64, bits)
            verify.verify_matmul(mx.ones((16, 256), mx.bfloat16), *w, bits=bits)


def geospatial_shapes(count, corners):
    """Rings side by side, and points, of which some are on their lines."""
    import shapely

    turns = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    ring = np.stack([np.cos(turns), np.sin(turns)], 1)
    shapes = [shapely.Polygon(ring * 0.6 + [k, 0]) for k in range(count)]
    points = np.random.default_rng(0).uniform(-1, count, (4096, 2))
    points[:corners] = ring[:4096] * 0.6
    return shapes, points


def mlx_geospatial():
    import mlx_geospatial as geo

    for count, corners in ((3, 4), (40, 30), (5, 3000), (300, 8)):
        shapes, points = geospatial_shapes(count, corners)
        polygons = geo.PolygonSet(shapes)
        local = polygons.to_local(points)
        for which in (points, local):
            for matches in (False, True):
                geo.point_in_polygon(which, polygons, all_matches=matches)
            geo.GridIndex(polygons).query(which)
            geo.contains_matrix(which, polygons)
    for k, n in itertools.product((1, 4, 16), (64, 4096)):
        geo.haversine_knn(points[:64], points[:n], k=k)


def flash_kmeans_mlx():
    from flash_kmeans_mlx import batch_kmeans_Euclid

    for clusters in (64, 1000):
        x = mx.random.normal((1, 4096, 64))
        batch_kmeans_Euclid(x, n_clusters=clusters, max_iters=2)


def mlx_nufft():
    import mlx_nufft as nufft

    rng = np.random.default_rng(0)
    for dim, points in itertools.product((1, 2, 3), (2000, 30_000)):
        modes = ((512,), (64, 48), (24, 20, 16))[dim - 1]
        x = [rng.uniform(-np.pi, np.pi, points) for _ in modes]
        c = rng.standard_normal(points) + 1j * rng.standard_normal(points)
        for eps in (1e-3, 1e-6):
            f = getattr(nufft, f"nufft{dim}d1")(*x, c, modes, eps=eps)
            getattr(nufft, f"nufft{dim}d2")(*x, np.ones(modes, complex), eps=eps)
            s = [rng.uniform(-20, 20, points) for _ in modes]
            getattr(nufft, f"nufft{dim}d3")(*x, c, *s, eps=eps)
        many = nufft.Plan(1, modes, n_trans=3, eps=1e-5)
        many.setpts(*x)
        many.execute(np.stack([c] * 3))
        for method in ("od", "gm"):
            for backend in ("gpu", "cpu"):
                how = {"spread_method": method, "points_backend": backend}
                with contextlib.suppress(ValueError):  # not for these sizes
                    nufft.Type1PlanND(x, modes, **how).execute(c)
                    nufft.Type2PlanND(x, modes, **how).execute(f)
    for kind in (nufft.Type1Plan, nufft.Type2Plan):
        kind(tuple(x), modes).execute(c if kind is nufft.Type1Plan else f)
    nufft.expi(rng.uniform(0, 1000, 100))


def mlx_tomo():
    import mlx_tomo

    angles = np.linspace(0, np.pi, 3)
    for mode, size in itertools.product(("cone", "parallel"), (16, 24)):
        geo = mlx_tomo.geometry(mode, np.array([size] * 3), default=True)
        image = np.ones(tuple(geo.nVoxel), np.float32)
        for kind in ("Siddon", "interpolated"):
            for x in (image, mx.array(image, mx.float16)):
                p = mlx_tomo.Ax(x, geo, angles, projection_type=kind)
        for kind in ("FDK", "matched"):
            mlx_tomo.Atb(p, geo, angles, backprojection_type=kind)
        (mlx_tomo.FDK if mode == "cone" else mlx_tomo.FBP)(p, geo, angles)


def mlx_vision_mamba():
    from mlx_vision_mamba import MambaBlock

    x = mx.random.normal((1, 64, 32))
    for mode in ("sequential", "chunked", "parallel", "metal", "metal_train"):
        MambaBlock(d_model=32, d_state=16, scan_mode=mode)(x)
    for mode in ("metal_train", "metal_fused"):
        block = MambaBlock(d_model=32, d_state=16, scan_mode=mode)
        mx.eval(mx.grad(lambda v, block=block: block(v).sum())(x))
    from mlx_vision_mamba import mamba_metal_chunked as chunked

    wide = mx.ones((1, 64, 32))
    b = mx.ones((1, 64, 16))
    d = mx.ones((32,))
    chunked.selective_scan_metal_chunked(wide, wide, mx.ones((32, 16)), b, b, d)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
