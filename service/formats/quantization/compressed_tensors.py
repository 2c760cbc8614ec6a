"""Groups of compressed-tensors."""

from collections.abc import Mapping

from service.formats.quantization.modules import ModulePatterns, parse_modules
from service.formats.quantization.reader import QuantizationReader, read_bits
from service.formats.quantization.rules import SchemeRules
from service.planning.errors import PlanningError
from service.planning.hardware.storage import MatrixScheme
from service.planning.precision import NumberFormat

_CLASSES = frozenset({"Linear", "ParallelLinear"})


def read_compressed_tensors(reader: QuantizationReader) -> SchemeRules:
    """Returns the schemes of all groups, those of named modules first."""
    groups = reader.fields.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise PlanningError(
            "CONFIG_FIELD_MISSING", f"{reader.pointer}/config_groups", "config_groups is missing"
        )
    schemes: list[tuple[ModulePatterns | None, MatrixScheme]] = []
    compute = NumberFormat.BF16
    for name, group in groups.items():
        pointer = f"{reader.pointer}/config_groups/{name}"
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            raise PlanningError("CONFIG_FIELD_MISSING", f"{pointer}/weights", "weights is missing")
        scheme, compute = _read_group_scheme(QuantizationReader(weights, f"{pointer}/weights"))
        targets = group.get("targets")
        everything = targets is None or (isinstance(targets, list) and bool(_CLASSES & {*map(str, targets)}))
        modules = None if everything else parse_modules(targets, f"{pointer}/targets")
        schemes.append((modules, scheme))
    # A group of named modules comes before one of a class.
    schemes.sort(key=lambda entry: entry[0] is None)
    return SchemeRules(tuple(schemes), reader.read_modules("ignore"), compute, head=True)


def _read_group_scheme(reader: QuantizationReader) -> tuple[MatrixScheme, NumberFormat]:
    """The scheme of the ``weights`` of one group of compressed-tensors."""
    bits, kind = read_bits(reader, "num_bits"), reader.fields.get("type", "int")
    strategy = reader.fields.get("strategy") or ("group" if reader.fields.get("group_size") else "tensor")
    zero = 0.0 if reader.read_flag("symmetric", default=True) else float(bits)
    narrow = bits <= 4  # noqa: PLR2004
    if kind == "float":
        compute = NumberFormat.FP4 if narrow else NumberFormat.FP8
    else:
        compute = NumberFormat.INT4 if narrow else NumberFormat.INT8
    match strategy:
        case "tensor":
            return MatrixScheme(bits, matrix_bytes=4.0), compute
        case "channel":
            return MatrixScheme(bits, 16.0, zero), compute
        case "block":
            sides = reader.read_block("block_structure") or (128, 128)
            return MatrixScheme(bits, 32.0, zero, sides[1], sides[0]), compute
        case "tensor_group":
            size = reader.read_integer("group_size", default=16)
            return MatrixScheme(bits, 8.0, zero, size, matrix_bytes=8.0), compute
        case "group":
            size = reader.read_integer("group_size")
            # Four-bit floats in groups of 32 are MXFP4, whose scale is an exponent.
            scale = 8.0 if kind == "float" and narrow else 16.0
            return MatrixScheme(bits, scale, zero, size), compute
        case _:
            raise PlanningError(
                "QUANTIZATION_UNKNOWN", f"{reader.pointer}/strategy", "this strategy is not known"
            )
