"""The software GPU computes what the CPU computes: op by op, forward and gradient, and whole Keras models."""

from __future__ import annotations

import pytest

from tests.doctor.software_gpu.conftest import Run
from tests.support import ALL_CASES

MODELS = [
    "mlp",
    "mlp_compiled",
    "cnn",
    "batch_norm",
    "lstm",
    "lstm_masked",
    "gru",
    "bidirectional",
    "two_layers",
    "attention",
]
# Dear to build and to train a step of.
DEEP = ["mobilenet_v2", "resnet50"]
if ALL_CASES:
    MODELS += DEEP
# These rename a buffer, which launches nothing on a GPU, or have no kernel for it with these arguments.
NO_LAUNCH = {"identity", "reshape", "expand_dims", "squeeze", "crop_and_resize"}


@pytest.mark.slow
def test_at_least_150_ops_agree_with_the_cpu(run: Run) -> None:
    facts = run("parity")
    failed = {name: fact["error"] for name, fact in facts.items() if "error" in fact}
    assert failed == {}
    apart = {n: f for n, f in facts.items() if max(f["forward"], f["gradient"]) > 1e-5}
    assert apart == {}
    assert {name for name, fact in facts.items() if fact["launches"] == 0} <= NO_LAUNCH
    assert len(facts) - len(NO_LAUNCH) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_keras_models_train_with_the_losses_of_the_cpu(run: Run, name: str) -> None:
    cpu, gpu = run("models", "cpu", *MODELS)[name], run("models", "gpu", *MODELS)[name]
    if name in DEEP:
        # Fifty untrained layers multiply the rounding in which processors differ: the first loss shows the forward
        # pass, the way to the second the gradient and the update.
        assert gpu["losses"][0] == pytest.approx(cpu["losses"][0], rel=1e-4)
        ways = [made["losses"][1] - made["losses"][0] for made in (gpu, cpu)]
        assert ways[0] == pytest.approx(ways[1], rel=0.1)
    else:
        assert gpu["losses"] == pytest.approx(cpu["losses"], rel=1e-3)
        assert gpu["losses"][0] == pytest.approx(cpu["losses"][0], rel=1e-5)
    assert gpu["losses"][-1] != gpu["losses"][0]
    assert gpu["launches"] > 0


def test_a_compiled_model_launches_less_than_the_same_one_op_by_op(run: Run) -> None:
    facts = run("models", "gpu", *MODELS)
    assert facts["mlp_compiled"]["launches"] < facts["mlp"]["launches"] / 5


def test_cudnn_layers_in_all_forms_agree_with_a_cell_by_cell_computation(run: Run) -> None:
    facts = run("recurrent")
    assert len(facts["apart"]) >= 12
    assert {name: worst for name, worst in facts["apart"].items() if worst > 1e-5} == {}
    assert len(facts["refused"]) == 2
    assert all("no dropout and no projection" in line for line in facts["refused"])
