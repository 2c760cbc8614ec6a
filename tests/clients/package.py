"""The Python package under a name of its own: that of generated clients is the same as its own."""

import asyncio
import importlib.util
import sys

import httpx

from clients.generator.__main__ import PYTHON

NAME = "maintained_ironlaw_client"
_SPEC = importlib.util.spec_from_file_location(
    NAME, PYTHON / "__init__.py", submodule_search_locations=[str(PYTHON)]
)
client = importlib.util.module_from_spec(_SPEC)
sys.modules[NAME] = client
_SPEC.loader.exec_module(client)


class Sync:
    """The synchronous client."""

    is_async = False

    def __init__(self, url="http://ironlaw.test", transport=None, **options):
        http = httpx.Client(transport=transport, trust_env=False, timeout=60)
        self.client = client.Ironlaw(url, http_client=http, **options)

    def run(self, answer):
        return answer

    def rows(self, pages):
        return list(pages)

    def close(self):
        self.client.close()


class Async:
    """The asynchronous client, whose calls run to their end."""

    is_async = True

    def __init__(self, url="http://ironlaw.test", transport=None, **options):
        self._runner = asyncio.Runner()
        http = httpx.AsyncClient(transport=transport, trust_env=False, timeout=60)
        self.client = client.AsyncIronlaw(url, http_client=http, **options)

    def run(self, answer):
        async def awaited():
            return await answer

        return self._runner.run(awaited())

    def rows(self, pages):
        async def collected():
            return [row async for row in pages]

        return self._runner.run(collected())

    def close(self):
        self.run(self.client.close())
        self._runner.close()
