"""A pytest plugin for packages that ask for the CPU where Metal has no linear algebra:
their stream=mx.cpu is the default device."""

import mlx.core as mx

mx.cpu = mx.gpu
