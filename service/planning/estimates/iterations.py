"""Iterations of a served model, preceded by its encoder of pictures, sound or text where it has one."""

from service.planning.cases import InferenceCase
from service.planning.hardware.collectives import build_fabric
from service.planning.inference import IterationModel, build_iteration_model
from service.planning.inference.encoded import add_encoder_pass, build_decoder_profile
from service.planning.inference.passes import (
    PartRole,
    PassModel,
    build_part,
    build_pass_machine,
    is_encoder_block,
    select_pass_widths,
    select_runtime,
)
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BITS


def build_iterations(case: InferenceCase) -> IterationModel | None:
    """Builds the iterations on one replica; None where the data of the device do not suffice."""
    architecture, cluster, calibration = case.profile.sampled, case.cluster, case.curves.calibration
    profile = case.profile if architecture is None else build_decoder_profile(architecture)
    decoder = build_iteration_model(
        profile, case.workload, case.layout, cluster=cluster, calibration=calibration
    )
    if architecture is None or decoder is None or case.encoding is None:
        return decoder
    runtime = select_runtime(case.encoding.engine)
    machine = build_pass_machine(cluster.accelerator, calibration, runtime)
    if machine is None:
        return None
    part = build_part(architecture, case.encoding.sample, runtime, PartRole.ENCODER, chosen=is_encoder_block)
    if not part.blocks:
        return decoder
    peaks = cluster.accelerator.peak_flops_per_second
    widths = select_pass_widths(decoder.wide, float(ELEMENT_BITS[decoder.wide]), peaks)
    encoder = PassModel(
        ((part, widths),),
        Parallelism(tensor=case.layout.tensor),
        machine=machine,
        fabric=build_fabric(cluster, calibration.links.value),
    )
    return add_encoder_pass(decoder, encoder)
