"""The iterations of a served model, behind the encoder of its pictures, sound or text where it has one."""

from typing import NamedTuple

from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Cluster
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
from service.planning.models.positions import Sample
from service.planning.models.profile import Profile
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BITS
from service.planning.workload import InferenceWorkload


class Encoded(NamedTuple):
    """What a request has in front of its decoder, and the engine as the question names it."""

    sample: Sample
    engine: str | None


def iterations_of(
    profile: Profile,
    workload: InferenceWorkload,
    layout: Parallelism,
    encoded: Encoded | None,
    *,
    cluster: Cluster,
    calibration: Calibration,
) -> IterationModel | None:
    """The iterations on one replica; None where the device does not say enough."""
    architecture = profile.sampled
    if architecture is None:
        return iteration_model(profile, workload, layout, cluster=cluster, calibration=calibration)
    decoder = iteration_model(
        decoder_of(architecture), workload, layout, cluster=cluster, calibration=calibration
    )
    if decoder is None or encoded is None:
        return decoder
    runtime = runtime_of(encoded.engine)
    machine = pass_machine(cluster.accelerator, calibration, runtime)
    if machine is None:
        return None
    part = part_of(architecture, encoded.sample, runtime, Role.ENCODER, chosen=encodes)
    if not part.blocks:
        return decoder
    peaks = cluster.accelerator.peak_flops_per_second
    widths = pass_widths(decoder.wide, float(ELEMENT_BITS[decoder.wide]), peaks)
    encoder = PassModel(
        ((part, widths),),
        Parallelism(tensor=layout.tensor),
        machine=machine,
        fabric=fabric_of(cluster, calibration.links.value),
    )
    return behind_encoder(decoder, encoder)
