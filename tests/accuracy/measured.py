"""Rows for the tests: one complete run, and files made of it."""

import csv

RUN = {
    "id": "made-0001",
    "source": "made for the tests",
    "source_ref": "",
    "kind": "training",
    "model": "Llama-2-7B",
    "params": "",
    "layers": "32",
    "hidden": "4096",
    "heads": "32",
    "kv_heads": "32",
    "ffn": "11008",
    "vocab": "32000",
    "precision": "bf16",
    "method": "pretrain",
    "parallelism": "TP=2",
    "gpu": "A100",
    "n_gpus": "8",
    "notes": "",
    "engine": "",
    "engine_version": "",
    "value": "30",
    "unit": "GB",
    "metric": "peak_memory_per_gpu",
    "run_id": "0123456789abcdef",
    "model_id": "llama-2-7b",
    "accelerator_id": "a100-sxm-80gb",
    "layout_json": '{"tensor":2,"data":4,"sharding":"zero_1"}',
    "precision_json": '{"compute":"bf16"}',
    "batch_json": '{"micro_batch_size":1,"global_batch_size":8}',
    "length_json": '{"sequence_length":2048}',
    "recomputation": "none",
    "recipe_json": "",
    "adaptation": "full",
    "trainable_parameters": "",
    "parameter_count": "6738415616",
    "active_parameter_count": "",
    "value_si": "30e9",
    "unit_si": "bytes",
    "per": "device",
    "eligible_hint": "",
}
SERVED = RUN | {
    "kind": "inference",
    "engine": "vLLM",
    "engine_version": "0.11.0 (V1)",
    "notes": "gpu_memory_utilization=0.9; total_gpu_memory=79.18 GiB; max_model_len=16000",
    "layout_json": '{"tensor":2}',
    "precision_json": '{"weights":"bf16","kv_cache":"bf16"}',
    "batch_json": "{}",
    "length_json": '{"max_model_len":4096}',
    "recomputation": "",
    "adaptation": "",
}


def write(path, *rows, without=()):
    """A file of rows, each of :data:`RUN` with some cells of its own."""
    header = [name for name in RUN if name not in without]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: (RUN | row)[name] for name in header})
    return path
