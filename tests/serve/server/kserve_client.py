"""Asks a server as KServe's client does, over REST and gRPC; run by a Python that has `kserve`. Prints JSON."""

from __future__ import annotations

import asyncio
import json
import sys

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig


def make_request() -> InferRequest:
    x = InferInput("x", [2, 1], "FP32")
    x.set_data_from_numpy(np.array([[2.0], [4.0]], "float32"), binary_data=False)
    return InferRequest("half", [x])


async def ask(url: str, grpc_address: str) -> dict[str, object]:
    rest = InferenceRESTClient(RESTConfig(protocol="v2"))
    old = InferenceRESTClient(RESTConfig(protocol="v1"))
    grpc = InferenceGRPCClient(grpc_address)
    predicted = await old.infer(url, {"instances": [[2.0]]}, model_name="half")
    return {
        "v1 live": await old.is_server_live(url),
        "v1 predict": predicted,
        "v2 live": await rest.is_server_live(url),
        "v2 ready": await rest.is_server_ready(url),
        "v2 model": await rest.is_model_ready(url, "half"),
        "v2 infer": (await rest.infer(url, make_request(), model_name="half")).outputs[0].as_numpy().tolist(),
        "grpc live": await grpc.is_server_live(),
        "grpc ready": await grpc.is_server_ready(),
        "grpc model": await grpc.is_model_ready("half"),
        "grpc infer": (await grpc.infer(make_request())).outputs[0].as_numpy().tolist(),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(ask(*sys.argv[1:]))))
