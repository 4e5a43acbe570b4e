"""The trainer's examples run and show what they say: all in one process, because TensorFlow starts slowly."""

from __future__ import annotations

import re
import runpy

import pytest

from tests.support import ROOT

EXAMPLES = ROOT / "examples" / "trainer"

# What a line of the output must say; the numbers in it are what the example is about.
SHOWN = {
    "accumulation": r"the weights differ by \d\.\de-0[6-9] at most",
    "averaged_weights": r"the averaged weights: error 0\.0",
    "clipping": r"global_norm=1\.0\)\s+typical error 0\.",
    "evaluate_every": r"step 200: loss 0\.1",
    "mixed_precision": r"mixed_float16 .* after 3[01]\d updates of 320 steps, the loss scale went from 2\^24",
    "rates_and_freezing": r"update  96: .* moved by 0\.000\nupdate 128: .* moved by [1-9]",
    "several_losses": r"by gradients' norms  price off by   .*, kind right 9",
    "spike_recovery": r"back to step \d+; from here the rate is 0\.3 of what it was",
    "wgan_gp": r"epoch 48: distance .*, radius [12]\.",
}


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SHOWN)
def test_example(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert re.search(SHOWN[name], capfd.readouterr().out)


def test_every_example_is_listed() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py")}
    # The devices of `replicas` must be made before TensorFlow starts: test_trainer_replicas has such a process.
    assert programs == {*SHOWN, "replicas"}
    listed = re.findall(r"`(\w+)\.py`", (EXAMPLES / "README.md").read_text())
    assert set(listed) == programs
