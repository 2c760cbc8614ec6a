"""flash-attn 3 and FlashInfer on the stand-in of PyTorch: their calls, and layouts that they refuse."""

import numpy as np


def paged(held, table, order):
    """A cache (sequence, head, token, element) from its pages."""
    pages = held.transpose(order)[table]
    found = pages.transpose(0, 2, 1, 3, 4)
    return found.reshape(*found.shape[:2], -1, found.shape[-1])


class FakeFlashAttention:
    """The module ``flash_attn_interface``: tokens before heads, through strides."""

    def __init__(self, torch):
        self._torch, self.calls = torch, []

    def flash_attn_func(self, q, k, v, causal):
        self.calls.append("prefill")
        turned = (each.held.transpose(0, 2, 1, 3) for each in (q, k, v))
        return self._torch.attend(*turned, is_causal=causal)

    def flash_attn_with_kvcache(self, q, k, v, cache_seqlens, page_table, causal):
        self.calls.append("decode")
        assert not causal
        queries = q.held.transpose(0, 2, 1, 3)
        if page_table is None:
            keys, values = (each.held.transpose(0, 2, 1, 3) for each in (k, v))
        else:
            keys, values = (paged(each.held, page_table.held, (0, 2, 1, 3)) for each in (k, v))
        assert set(cache_seqlens.held) == {keys.shape[2]}
        # Some releases give the sums of the softmax, too.
        return self._torch.attend(queries, keys, values, is_causal=False), None


class FakeFlashInfer:
    """The module ``flashinfer``: a wrapper is planned, then run."""

    def __init__(self, torch):
        outer = self
        self.torch, self.refuses, self.calls = torch, None, []

        class Wrapper:
            def __init__(self, workspace, kv_layout, **options):
                assert workspace.held.nbytes == 128 * 2**20
                self.layout, self.options = kv_layout, options

        class Prefill(Wrapper):
            def plan(self, qo_indptr, kv_indptr, *heads, causal, q_data_type):
                if outer.refuses:
                    raise ValueError(outer.refuses)
                assert (self.layout, causal, q_data_type) == ("NHD", True, torch.dtype)
                assert list(qo_indptr.held) == list(kv_indptr.held)
                assert len(heads) == 3
                self.ends = qo_indptr.held

            def run(self, q, k, v):
                outer.calls.append("prefill")
                shapes = [(len(self.ends) - 1, self.ends[1], *each.shape[1:]) for each in (q, k, v)]
                turned = (
                    each.held.reshape(shape).transpose(0, 2, 1, 3)
                    for each, shape in zip((q, k, v), shapes, strict=True)
                )
                return torch.attend(*turned, is_causal=True).reshape(q.shape)

        class Decode(Wrapper):
            def plan(self, indptr, indices, last, *shape, q_data_type, kv_data_type):
                heads, kv_heads, _, page = shape
                assert (self.layout, self.options) == ("HND", {"use_tensor_cores": heads > kv_heads})
                assert q_data_type == kv_data_type == torch.dtype
                assert set(last.held) == {page}
                pages = np.diff(indptr.held)
                self.table = indices.held.reshape(len(pages), pages[0])

            def run(self, q, cache):
                outer.calls.append("decode")
                keys, values = (paged(each.held, self.table, (0, 1, 2, 3)) for each in cache)
                return torch.attend(q.held[:, :, None], keys, values, is_causal=False).reshape(q.shape)

        self.BatchPrefillWithRaggedKVCacheWrapper = Prefill
        self.BatchDecodeWithPagedKVCacheWrapper = Decode
