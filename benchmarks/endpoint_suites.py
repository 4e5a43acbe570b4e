"""The endpoint tests of KServe and MLServer, asked over real connections of `stoker serve`.

    make peers-serving KSERVE=a/checkout/of/kserve MLSERVER=a/checkout/of/MLServer

Nothing of the tests is changed: a pytest plugin replaces their fixtures (`endpoint_fixtures`), so their clients reach
our server, which serves models that compute what theirs do (`endpoint_models`). Each suite runs in an environment of
its own. Tests of what runs inside the other server's process are left out; every failure has its reason here, and one
without is an error.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) (\S+?)(?: - .*)?$", re.MULTILINE)


CLOUD_EVENTS = "CloudEvents are not spoken"
LOADING = "versions are loaded by renaming them into place, not by requests"
WORDS = "the same status; the test compares the words of the message"
LAYOUT = "the same values; the test compares bytes: the order of JSON's keys, its nulls, no version, digits of floats"


@dataclass(frozen=True)
class Suite:
    """Tests of another server.

    Attributes:
        root: where its tests start from, in its checkout.
        files: the files with tests of endpoints.
        left_out: parts of the names of tests that ask nothing over a connection.
        explained: why tests fail, by a pattern of their names.
    """

    root: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    explained: dict[str, str]


SUITES = {
    "kserve": Suite(
        "python/kserve",
        ("test/test_server.py", "test/test_grpc_server.py", "test/test_inference_client.py"),
        (
            "TestModel", "TestStreamPredict", "TestWithUnhealthyModel", "TestMutiProcessServer",
            "TestModelServerWithPredictorConfig", "TestModelServerEventLoopWithDummy", "TestInferenceGRPCClient",
            "test_infer_graph_endpoint", "test_infer_path_based_routing",
        ),
        {
            "CloudEvent": CLOUD_EVENTS,
            "LoadAndUnLoad": LOADING,
            "test_explain": "there is no explainer: a SavedModel has signatures",
            "test_datetime_output": "the answer is the time from Python's clock; a SavedModel cannot give it",
            "TestRayServer::test_health_handler|test_is_model_ready.v1": (
                "KServe's answer at GET /v1/models/NAME contradicts TensorFlow Serving's, which ours gives"
            ),
            "test_infer.v1-v1": '{"inputs": ...} is answered with "outputs", as by TensorFlow Serving',
            "ModelNot": "a model without a version is answered with 404, as by TensorFlow Serving, not with 503",
            "test_unknown_": WORDS,
            "test_infer_parameters_v2": "the answer repeats the request's parameters: the other model's own doing",
            "fp16_(in|out)put_not_binary": "FP16 as JSON is taken and given here; KServe refuses it",
            "test_infer_with_(all_)?binary_data": "an input that the model does not have gets a 400; KServe ignores it",
            "as_binary_data|test_requested_output|parameter_precedence": LAYOUT,
            "test_grpc_(raw_inputs|fp16)": (
                "the same bytes, but each raw output also has a parameter binary_data_size, which the protocol has not"
            ),
        },
    ),
    "mlserver": Suite(
        ".",
        (
            "tests/rest/test_endpoints.py", "tests/grpc/test_servicers.py",
            "tests/grpc/test_model_repository.py",
        ),
        ("test_repositoryindexrequest_to_types", "test_repositoryindexresponse_from_types"),
        {
            "test_(server_)?metadata": "the server is called mlserver, and has no extensions",
            "test_(model_)?(openapi|docs)": "the OpenAPI document is at /openapi.json; there is no Swagger page",
            "generate|stream_infer.text": "MLServer's own generate and token streams; no SavedModel gives them",
            "v1.2.3": "versions are numbers here, as for TensorFlow Serving",
            "headers": CLOUD_EVENTS + ", and its model repeats headers",
            "test_infer_error|test_model_infer_error": WORDS,
            "stream_infer_error": "an error in a stream ends only its request, as with Triton",
            "invalid_datatype": WORDS + "; over HTTP, a status of 400, not FastAPI's 422",
            "test_model_repository.py": "the service ModelRepository, which that file calls deprecated",
            "repository_(un)?load": LOADING,
        },
    ),
}  # fmt: skip


def run_suite(name: str, checkout: Path, python: str, models: Path, shown: Path | None) -> dict[str, str]:
    """The outcome of every test, by its name."""
    suite = SUITES[name]
    root = checkout / suite.root
    environment = {
        **os.environ, "STOKER_PYTHON": sys.executable, "STOKER_MODELS": str(models), "STOKER_SUITE": name,
        "STOKER_PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PYTHONPATH": os.pathsep.join([str(HERE), str(root)]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }  # fmt: skip
    command = [
        python,
        "-m",
        "pytest",
        "-p",
        "endpoint_fixtures",
        "-p",
        "no:cacheprovider",
        "-rA",
        "--tb=short",
    ]
    command += ["-q", "-k", " and ".join(f"not {one}" for one in suite.left_out), *suite.files]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if shown:
        shown.write_text(done.stdout + done.stderr, encoding="utf-8")
    return {test: outcome for outcome, test in _OUTCOME.findall(done.stdout)}


def explain(suite: Suite, test: str) -> str:
    """Why a test fails; nothing if nobody knows."""
    return next((why for pattern, why in suite.explained.items() if re.search(pattern, test)), "")


def main() -> int:
    """Run the suites whose checkouts are given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in SUITES:
        parser.add_argument(f"--{name}", type=Path, help=f"a checkout of {name}")
        parser.add_argument(f"--{name}-python", default=sys.executable, help=f"a Python that has {name}")
    parser.add_argument("--output", type=Path, help="a directory for all that the tests print")
    args = vars(parser.parse_args())
    unexplained = 0
    with tempfile.TemporaryDirectory() as directory:
        save = [sys.executable, str(HERE / "endpoint_models.py"), directory]
        subprocess.run(save, check=True, stderr=subprocess.DEVNULL)
        for name, suite in SUITES.items():
            if args[name] is None:
                continue
            shown = args["output"] / f"{name}.txt" if args["output"] else None
            python = os.path.abspath(args[f"{name}_python"])
            found = run_suite(name, args[name].resolve(), python, Path(directory), shown)
            reasons = Counter(explain(suite, test) for test, outcome in found.items() if outcome != "PASSED")
            print(f"{name}: {sum(one == 'PASSED' for one in found.values())} of {len(found)} passed")
            for why, count in reasons.items():
                print(f"  {count:3} failed: {why or 'nobody knows why'}")
            for test, outcome in found.items():
                if outcome != "PASSED" and not explain(suite, test):
                    print(f"  {outcome} {test}")
            unexplained += reasons[""] + (not found)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
