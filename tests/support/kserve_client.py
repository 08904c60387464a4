"""KServe's own client: for each line {"url", "name", "bodies", "headers"}, the answers to all bodies at once.

python tests/support/kserve_client.py, run by the Python of KServe's environment; an answer is [status, document].
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import httpx
from kserve import InferenceRESTClient
from kserve.inference_client import RESTConfig


async def ask(client: Any, line: dict[str, Any], body: Any) -> list[Any]:
    try:
        return [200, await client.explain(line["url"], line["name"], body, headers=line.get("headers"))]
    except httpx.HTTPStatusError as error:
        return [error.response.status_code, error.response.json()]


async def main() -> None:
    client = InferenceRESTClient(RESTConfig(protocol="v1", timeout=120, retries=0))
    while text := await asyncio.to_thread(sys.stdin.readline):
        line = json.loads(text)
        answers = await asyncio.gather(*(ask(client, line, body) for body in line["bodies"]))
        sys.stdout.write(json.dumps(answers) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
