"""Classes with the names and attributes of mlx-vlm's caches, which are not mlx-lm's."""

from mlx_lm.models import cache


class KVCache(cache.KVCache):
    pass


class RotatingKVCache(cache.RotatingKVCache):
    pass


class BatchKVCache(cache.BatchKVCache):
    pass
