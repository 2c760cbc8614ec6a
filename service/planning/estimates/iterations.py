"""The iterations of a served model, behind the encoder of its pictures, sound or text where it has one."""

from service.planning.cases import InferenceCase
from service.planning.hardware.collectives import fabric_of
from service.planning.inference import IterationModel, iteration_model
from service.planning.inference.encoded import behind_encoder, decoder_of
from service.planning.inference.passes import (
    PassModel,
    Role,
    encodes,
    part_of,
    pass_machine,
    pass_widths,
    runtime_of,
)
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BITS


def model_iterations(case: InferenceCase) -> IterationModel | None:
    """The iterations on one replica; None where the device does not say enough."""
    architecture, cluster, calibration = case.profile.sampled, case.cluster, case.curves.calibration
    profile = case.profile if architecture is None else decoder_of(architecture)
    decoder = iteration_model(profile, case.workload, case.layout, cluster=cluster, calibration=calibration)
    if architecture is None or decoder is None or case.encoding is None:
        return decoder
    runtime = runtime_of(case.encoding.engine)
    machine = pass_machine(cluster.accelerator, calibration, runtime)
    if machine is None:
        return None
    part = part_of(architecture, case.encoding.sample, runtime, Role.ENCODER, chosen=encodes)
    if not part.blocks:
        return decoder
    peaks = cluster.accelerator.peak_flops_per_second
    widths = pass_widths(decoder.wide, float(ELEMENT_BITS[decoder.wide]), peaks)
    encoder = PassModel(
        ((part, widths),),
        Parallelism(tensor=case.layout.tensor),
        machine=machine,
        fabric=fabric_of(cluster, calibration.links.value),
    )
    return behind_encoder(decoder, encoder)
