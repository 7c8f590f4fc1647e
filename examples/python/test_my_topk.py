# SPDX-License-Identifier: Apache-2.0
"""A pytest of a top-k: every selected key is the right one, on scores where kernels went wrong.

    pytest test_my_topk.py
"""

import array
import random

import pytest

import exact_topk


def my_topk(scores, k):
    """Put your own here: the positions of the k largest scores, ties to the lowest position."""
    order = sorted(range(len(scores)), key=lambda position: (-scores[position], position))
    return array.array("i", order[:k])


def normal(n):
    generator = random.Random(n)
    return [generator.gauss(0, 1) for _ in range(n)]


def one_coarse_bin(n):
    """More keys in one fp16 bin than buffers held."""
    generator = random.Random(n)
    return [1.0 + 0.24 * generator.random() for _ in range(n)]


def plateau(n):
    """100 winners; all others tie."""
    return [float(position < 100) for position in range(n)]


@pytest.mark.parametrize("fill", [normal, one_coarse_bin, plateau])
@pytest.mark.parametrize("n", [1, 2047, 2048, 2049, 16385])
def test_my_topk(fill, n):
    scores = array.array("f", fill(n))
    exact_topk.check_list(scores, my_topk(scores, 2048), k=2048, contract="sorted").expect()
