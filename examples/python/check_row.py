# SPDX-License-Identifier: Apache-2.0
"""A row's list, checked against its scores. numpy arrays and torch CPU tensors go in as they are."""
import array

import exact_topk

scores = array.array("f", [0.5, 3, 2, 2, 1])
topk = array.array("i", [1, 3])
print(exact_topk.check_list(scores, topk, contract="values"))
print(exact_topk.check_list(scores, topk, contract="set"))
