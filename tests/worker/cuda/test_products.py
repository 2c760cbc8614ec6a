"""Products of scaled blocks and of groups of experts: the calls, the layouts of scales, and the checks."""

import importlib
from fractions import Fraction

import numpy as np
import pytest
from pydantic import ValidationError

from service.protocol.work.products import BlockScaledGemmWork, GroupedGemmWork, WeightOnlyGemmWork
from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, bindings, block_scaled_gemm, gemm, numbers, weight_only_gemm
from tests.worker.cuda.fake_cublas import FakeCublas
from tests.worker.cuda.fake_cublaslt import CUBLAS, FakeLt
from tests.worker.cuda.test_cuda import SEED, asked

FORMATS = tuple(block_scaled_gemm.FORMATS)


def opened(monkeypatch, modules):
    monkeypatch.setattr(
        bindings, "import_module", lambda name: modules.get(name) or importlib.import_module(name)
    )


@pytest.fixture
def lt(driver, monkeypatch):
    """A cuBLASLt on a device that has every format."""
    for name, found in block_scaled_gemm.FORMATS.items():
        mode = found.mode._replace(capability=(9, 0))
        monkeypatch.setitem(block_scaled_gemm.FORMATS, name, found._replace(mode=mode))
    monkeypatch.setattr(gemm, "MOST_SETS", 2)
    fake = FakeLt(driver.advance)
    fake.microseconds, fake.states = [70], [0]
    opened(monkeypatch, {"nvmath.bindings.cublasLt": fake, "nvmath.bindings.cublas": CUBLAS})
    yield fake
    assert fake.objects == {}


def scaled(number_format, m=144, n=256, k=384):
    work = {"number_format": number_format, "m": m, "n": n, "k": k}
    return PREPARE["block_scaled_gemm"](
        asked("block_scaled_gemm", metric="flops_per_second", **work), SEED, 0
    )


class TestScaledBlocks:
    @pytest.mark.parametrize("number_format", FORMATS)
    @pytest.mark.parametrize("shape", [(144, 256, 384), (16, 128, 640)])
    @pytest.mark.usefixtures("lt")
    def test_every_format_is_computed_and_passes(self, number_format, shape):
        """Also where the last tile of scales is only partly of the matrix."""
        with scaled(number_format, *shape) as timed:
            correctness = timed.check()
            modes = block_scaled_gemm.FORMATS[number_format]
            assert timed.facts.math_mode == f"CUBLAS_COMPUTE_32F, {modes.a.mode} and {modes.b.mode}"
            assert timed.execute(2) > 0
        assert correctness.passed, correctness
        assert 0 < correctness.largest_error < correctness.tolerance / 2

    @pytest.mark.parametrize("number_format", FORMATS)
    @pytest.mark.usefixtures("lt")
    def test_every_set_has_scales_of_its_own(self, number_format):
        with scaled(number_format) as timed:
            addresses = timed._with_scales.scales
            assert timed.facts.rotated_buffers > 1
            assert len(set(addresses.values())) == len(addresses) == 2 * timed.facts.rotated_buffers
            assert timed.check().passed
            # The second set, held against the numbers of the first one.
            timed._sets = timed._sets[1:]
            assert not timed.check().passed

    @pytest.mark.parametrize("number_format", FORMATS)
    @pytest.mark.usefixtures("lt")
    def test_scales_in_another_order_do_not_pass(self, number_format):
        def by_row(row, block, rows, blocks):
            return row * blocks + block

        with scaled(number_format) as timed:
            for which in (0, 1):
                real = timed._first[which]
                timed._first[which] = real._replace(layout=real.layout._replace(find_place=by_row))
                assert not timed.check().passed
                timed._first[which] = real

    @pytest.mark.parametrize(("number_format", "needs"), [("mxfp8", "10.0"), ("nvfp4", "10.0")])
    def test_a_device_without_the_format_is_told_so(self, driver, monkeypatch, number_format, needs):
        opened(
            monkeypatch,
            {"nvmath.bindings.cublasLt": FakeLt(driver.advance), "nvmath.bindings.cublas": CUBLAS},
        )
        with pytest.raises(Unsupported, match=f"{number_format} needs compute capability {needs} or newer"):
            scaled(number_format).__enter__()

    def test_what_the_library_refuses_is_unsupported(self, lt):
        lt.supports = False
        with pytest.raises(Unsupported, match="CUBLAS_STATUS_NOT_SUPPORTED"):
            scaled("fp8_blocks").__enter__()

    @pytest.mark.usefixtures("lt")
    def test_matrices_that_do_not_fit_are_unsupported(self, driver):
        driver.memory(40 * 2**20)
        with pytest.raises(Unsupported, match=r"needs \d+ bytes, \d+ are free"):
            scaled("mxfp8", 4096, 4096, 4096).__enter__()

    def test_sides_that_blocks_do_not_divide_are_refused(self):
        for shape in ((16, 100, 128), (16, 128, 96), (3, 128, 128)):
            with pytest.raises(ValidationError, match="multiple"):
                scaled("mxfp8", *shape)

    @pytest.mark.parametrize(("number_format", "moved"), [
        ("mxfp8", 33 / 32 * 2 * 4096**2), ("nvfp4", 9 / 16 * 2 * 4096**2),
        ("fp8_blocks", (2 + 1 / 32 + 1 / 4096) * 4096**2),
    ])  # fmt: skip
    def test_the_bytes_of_a_product_count_its_scales(self, number_format, moved):
        work = BlockScaledGemmWork(
            kind="block_scaled_gemm", number_format=number_format, m=4096, n=4096, k=4096
        )
        assert work.count_work().moved_bytes == moved + 2 * 4096**2
        assert work.count_work().flops == 2 * 4096**3
        assert work.suite_form == 2


@pytest.fixture
def cublas(driver, monkeypatch):
    fake = FakeCublas(driver.advance)
    opened(monkeypatch, {"nvmath.bindings.cublas": fake})
    yield fake
    assert fake.handles == {}


def grouped(dtype="bf16", groups=5, m=48, n=80, k=96):
    work = {"dtype": dtype, "groups": groups, "m": m, "n": n, "k": k}
    return PREPARE["grouped_gemm"](asked("grouped_gemm", metric="flops_per_second", **work), SEED, 0)


class TestGroups:
    @pytest.mark.parametrize("dtype", ["bf16", "fp16"])
    @pytest.mark.parametrize("shape", [(5, 48, 80, 96), (3, 2, 32, 16), (1, 16, 16, 16)])
    def test_every_expert_has_its_own_product(self, cublas, driver, dtype, shape):
        with grouped(dtype, *shape) as timed:
            assert timed.facts.library == "cublas 13.0.2"
            before = cublas.calls
            driver.forget()
            assert timed.execute(3) == 240_000
            assert cublas.calls == before + 3
            assert driver.journal == ["spoil", *["flush", "record", "record"] * 3]
            correctness = timed.check()
            assert correctness.passed, correctness
            assert correctness.largest_error > 0

    def test_a_wrong_expert_or_place_does_not_pass(self, cublas, monkeypatch):
        with grouped() as timed:
            cublas.spoils = lambda product: product[::-1]
            assert not timed.check().passed
            cublas.spoils = lambda product: 1.1 * product
            assert not timed.check().passed
            cublas.spoils = lambda product: product
            # All experts by the matrix of the first one.
            first = np.full(5, timed._matrices[1], np.uint64)
            timed._device.to_device(timed._arguments[6], first)
            assert not timed.check().passed
            monkeypatch.setattr(timed, "_enqueue_products", lambda: None)
            assert timed.check().largest_error == 1e30

    def test_what_the_library_refuses_is_unsupported_with_its_status(self, cublas):
        cublas.refuses = "CUBLAS_STATUS_NOT_SUPPORTED (15)\nand more"
        with pytest.raises(Unsupported, match=r"^cuBLAS: CUBLAS_STATUS_NOT_SUPPORTED \(15\)$"):
            grouped().__enter__()

    @pytest.mark.usefixtures("cublas")
    def test_matrices_that_do_not_fit_are_unsupported(self, driver):
        driver.memory(40 * 2**20)
        with pytest.raises(Unsupported, match=r"needs \d+ bytes, \d+ are free"):
            grouped(m=4096, n=4096, k=4096).__enter__()

    def test_the_work_of_all_experts(self):
        work = GroupedGemmWork(kind="grouped_gemm", dtype="bf16", groups=8, m=4, n=1024, k=512)
        amount = work.count_work()
        assert amount.flops == 8 * 2 * 4 * 1024 * 512
        assert amount.moved_bytes == 8 * 2 * (4 * 512 + 1024 * 512 + 4 * 1024)


def weight_only(m=16, n=256, k=384, *, has_zero_points=False):
    work = {"dtype": "bf16", "has_zero_points": has_zero_points, "m": m, "n": n, "k": k}
    return PREPARE["weight_only_gemm"](asked("weight_only_gemm", metric="bytes_per_second", **work), SEED, 0)


class TestWeightsOfFourBits:
    @pytest.mark.parametrize("has_zero_points", [False, True])
    @pytest.mark.parametrize(("m", "n", "k"), [(1, 128, 128), (7, 128, 256), (9, 256, 128), (16, 256, 384)])
    def test_every_kernel_computes_whole_columns_of_every_row(self, driver, has_zero_points, m, n, k):
        with weight_only(m, n, k, has_zero_points=has_zero_points) as timed:
            kind = "zeros" if has_zero_points else "symmetric"
            driver.forget()
            correctness = timed.check()
            assert driver.journal == ["spoil", f"weight_only_{kind}_{8 if m <= 8 else 16}", "download"]
        assert correctness.passed, correctness
        assert correctness.largest_error > 0

    @pytest.mark.parametrize("part", range(4))
    @pytest.mark.usefixtures("driver")
    def test_every_part_of_the_operands_counts(self, part):
        with weight_only(has_zero_points=True) as timed:
            assert timed.check().passed
            changed = np.empty(64, np.uint32)
            timed._device.to_host(changed, timed._sets[0][part])
            changed ^= np.uint32(0x01010101)
            timed._device.to_device(timed._sets[0][part], changed)
            assert not timed.check().passed

    @pytest.mark.usefixtures("driver")
    def test_without_zero_points_they_are_in_the_middle(self):
        with weight_only() as timed:
            column = timed.generate_columns(np.array([3]))[0, :128]
        scale = numbers.generate_group_scales(numbers.derive_seed(SEED, 1), np.array([3]))
        assert set(np.unique(column / scale)) == set(range(-8, 8))

    def test_sets_take_turns_in_a_graph_and_few_data_are_flushed_each_time(self, driver, monkeypatch):
        driver.takes("weight_only_symmetric_8", 20)
        monkeypatch.setattr(weight_only_gemm, "CACHE_SHARE", Fraction(1, 50))
        monkeypatch.setattr(weight_only_gemm, "GRAPH_NS", 100_000)
        with weight_only(1, 128, 128) as timed:
            assert timed.facts.rotated_buffers > 1
            assert timed.facts.executions_per_launch % timed.facts.rotated_buffers == 0
            together = timed.facts.executions_per_launch
            driver.forget()
            assert timed.execute(together) == 20_000 * together
            assert driver.journal[:3] == ["flush", "record", "graph"]
            assert driver.journal.count("weight_only_symmetric_8") == together
        monkeypatch.setattr(weight_only_gemm, "MOST_SETS", 1)
        with weight_only(1, 128, 128) as timed:
            driver.forget()
            timed.execute(2)
            assert driver.journal == ["flush", "record", "weight_only_symmetric_8", "record"] * 2

    def test_the_bytes_of_a_product_count_scales_and_zero_points(self):
        shape = {"kind": "weight_only_gemm", "dtype": "bf16", "m": 2, "n": 4096, "k": 4096}
        with_zeros, without = (
            WeightOnlyGemmWork(**shape, has_zero_points=each).count_work() for each in (True, False)
        )
        # 4 bits, a scale of 16 for each 128, a zero point of 4 for each 128; rows of both sides.
        assert without.moved_bytes == 4096**2 * (4 + 16 / 128) / 8 + 2 * 2 * 8192
        assert with_zeros.moved_bytes == without.moved_bytes + 4096**2 * 4 / 128 / 8
        assert without.flops == 2 * 2 * 4096**2
        with pytest.raises(ValidationError, match="multiples of 128"):
            WeightOnlyGemmWork(**{**shape, "n": 64}, has_zero_points=True)


def test_elements_and_scales_are_those_of_the_kernels(driver):
    """Every fill of a format, held against the host's own numbers."""
    from tests.worker.cuda.host_kernels import run  # noqa: PLC0415

    packed = np.zeros(4096, np.uint8)
    run("random.cu", "fill_fp4_e2m1", 2, 256, packed, packed.size, 77)
    codes = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)
    values = np.where(codes & 8, -1.0, 1.0) * numbers.FP4_E2M1[codes & 7]
    assert np.array_equal(values, numbers.generate_elements("fill_fp4_e2m1", 77, np.arange(8192)))
    assert set(np.abs(values)) == {0.0, 0.5, 1.0, 1.5, 2.0, 3.0}
    for fill, decode in (
        ("fill_ue8m0", lambda held: 2.0 ** (held.astype(int) - 127)),
        ("fill_ue4m3", numbers.decode_fp8_e4m3),
        ("fill_scale", lambda held: held.astype(np.float64)),
    ):
        held = np.zeros(4096, np.float32 if fill == "fill_scale" else np.uint8)
        run("random.cu", fill, 2, 256, held, held.size, 78)
        found = numbers.generate_scales(fill, 78, np.arange(4096))
        assert np.array_equal(decode(held), found)
        assert found.min() >= 0.5
        assert found.max() <= 2.0
