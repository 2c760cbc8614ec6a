"""Bring what a load test measured into the estimates, and let a GPU host in that measures more."""

import os
import sys
from pathlib import Path

from connection import connected, expected
from ironlaw_client.api.enrolment_tokens import create_enrolment_token
from ironlaw_client.api.evidence import import_evidence
from ironlaw_client.models import (
    CatalogAccelerator,
    CatalogModel,
    ClusterInput,
    EnrolmentTokenRequest,
    EvidenceFormat,
    EvidenceImportRequest,
    ImportedEvidence,
    InferenceWorkloadInput,
    IssuedEnrolmentToken,
    ServingEngineInput,
    WeightPrecision,
)
from ironlaw_client.types import Unset

TABLE = """metric,value,statistic,workload.concurrency,workload.input_tokens,workload.output_tokens
time_per_output_token_seconds,0.0092,mean,16,1024,256
time_to_first_token_seconds,0.081,p50,16,1024,256
"""
EVIDENCE = EvidenceImportRequest(
    format_=EvidenceFormat.EVIDENCE_FORMAT_OWN_CSV,
    content=TABLE,
    model=CatalogModel(source="catalog", id="llama-3.1-8b"),
    cluster=ClusterInput(CatalogAccelerator(source="catalog", id="h100-sxm"), accelerator_count=1),
    workload=InferenceWorkloadInput(
        kind="inference",
        weight_precision=WeightPrecision.WEIGHT_PRECISION_BF16,
        engine=ServingEngineInput(name="vllm"),
    ),
    note="Load test of the chat service",
)


def main(token_file: Path) -> None:
    """Import, and write the token of a node to a file for its owner alone."""
    with connected() as client:
        evidence = expected(ImportedEvidence, import_evidence.sync(client=client, body=EVIDENCE))
        for figure in evidence.answers:
            print(f"{figure.family}: measured {figure.measured:.4g}, estimated {figure.estimated:.4g}")
        body = EnrolmentTokenRequest(node_name="rack-1", lifetime_seconds=900)
        issued = expected(IssuedEnrolmentToken, create_enrolment_token.sync(client=client, body=body))
    if isinstance(issued.token, Unset):
        raise SystemExit("the token was shown before")
    with os.fdopen(os.open(token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(issued.token)
    print(f"on the node: ironlaw worker enrol --service URL --token-file {token_file}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
