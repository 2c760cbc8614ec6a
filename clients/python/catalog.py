"""Import a model, correct it, and find it among all the others: pages, versions, and what null says."""

import json
import sys
from functools import partial
from pathlib import Path

from connection import connected, expected, retried
from ironlaw_client.api.models import delete_model, import_model, list_models, update_model
from ironlaw_client.models import (
    Citation,
    ImportedModel,
    Model,
    ModelImportRequest,
    ModelImportRequestConfig,
    ModelPage,
    ModelPatch,
    Problem,
)


def main(config: Path, model_id: str) -> None:
    """Import the config.json of a model, list, change and delete it."""
    read = Citation(pointers=[""], citation="config.json of the model card", as_of="2026-11-20")
    settings = ModelImportRequestConfig.from_dict(json.loads(config.read_text()))
    body = ModelImportRequest(id=model_id, name="Ours", config=settings, sources=[read], note="To be checked")
    with connected() as client:
        made = import_model.sync_detailed(client=client, body=body)
        model = expected(ImportedModel, made.parsed).model
        print(f"{model.parameter_count:,} parameters, note: {model.note or 'none'}")
        ids: list[str] = []
        token: str | None = ""
        while token is not None:
            listed = retried(partial(list_models.sync, client=client, page_size=20, page_token=token))
            page = expected(ModelPage, listed)
            ids += [row.id for row in page.items]
            token = page.next_page_token
        print(f"listed: {ids.count(model_id)} time, in pages of 20 rows")
        # None is null and removes the note; members that are left out stay as they are.
        based_on = made.headers["etag"]
        changed = update_model.sync_detailed(
            model_id, client=client, body=ModelPatch(note=None), if_match=based_on
        )
        model = expected(Model, changed.parsed)
        print(f"version {model.version}, note: {model.note or 'none'}")
        # Somebody else has changed it since: read it again, and decide again.
        late = update_model.sync(model_id, client=client, body=ModelPatch(name="Theirs"), if_match=based_on)
        if isinstance(late, Problem):
            print(f"refused: {late.code}")
        delete_model.sync_detailed(model_id, client=client, if_match=changed.headers["etag"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
