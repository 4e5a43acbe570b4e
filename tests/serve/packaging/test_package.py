"""The files of a package: what is pinned, what an image may do, what the manifests say. Nothing is built here."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.serve import bundle
from stoker.serve.packaging import wheelhouse
from stoker.serve.signature import Field, Signature
from stoker.version import __version__
from tests.support import ROOT

yaml = pytest.importorskip("yaml")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A bundle as far as its description goes."""
    place = tmp_path / "My_Pets"
    (place / "saved_model").mkdir(parents=True)
    (place / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    signature = Signature((Field("x", "float32", (3,), "x"),), (Field("y", "float32", (), "y"),))
    description = {
        "schema": 1, "version": 7, "created": "now", "model": "pets", "signature": signature.to_json(), "labels": None,
        "versions": {"tensorflow": "2.21.0", "keras": "3.15.1"}, "weights": {"count": 1, "bytes": 300 << 20},
        "files": bundle.hashes(place),
    }  # fmt: skip
    (place / "bundle.json").write_text(json.dumps(description))
    return place


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    place = tmp_path / "wheels"
    place.mkdir()
    for name in (
        "stoker-1.0-py3-none-any.whl",
        "tensorflow_cpu-2.21.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "Some.Thing-2.0+local-1-py3-none-any.whl",
    ):
        (place / name).write_bytes(name.encode())
    return place


def packaged(path: Path, wheels: Path, *words: str) -> Path:
    target = path.parent / "out"
    assert main(["package", str(path), "-o", str(target), "--wheelhouse", str(wheels), *words]) == 0
    return target


def manifests(target: Path) -> dict[str, Any]:
    files = [*target.rglob("*.yaml")]
    return {file.relative_to(target).as_posix(): yaml.safe_load(file.read_text()) for file in files}


def test_every_wheel_is_pinned_by_its_hash(made: Path, wheels: Path) -> None:
    target = packaged(made, wheels)
    lines = (target / "requirements.txt").read_text().replace(" \\\n   ", "").splitlines()
    digest = hashlib.sha256(b"Some.Thing-2.0+local-1-py3-none-any.whl").hexdigest()
    assert lines[0] == f"some-thing==2.0+local --hash=sha256:{digest}"
    assert [line.split("==")[0] for line in lines] == ["some-thing", "stoker", "tensorflow-cpu"]
    assert sorted(one.name for one in (target / "wheelhouse").iterdir()) == sorted(
        one.name for one in wheels.iterdir()
    )
    # The bundle is in it as it was, and nothing else goes to the builder.
    bundle.check_files(bundle.read(target / "bundle"))
    assert (target / ".dockerignore").read_text().splitlines()[0] == "*"


def test_the_image_installs_only_what_is_pinned_proves_itself_and_is_no_root(
    made: Path, wheels: Path
) -> None:
    text = (packaged(made, wheels, "--python", "3.12", "--port", "9000") / "Dockerfile").read_text()
    build, final = text.split("\nFROM python:3.12-slim-bookworm\n")
    assert "FROM python:3.12-slim-bookworm AS build" in build
    assert "--no-index --find-links wheelhouse" in build
    assert "--require-hashes --requirement requirements.txt" in build
    assert build.rstrip().endswith("stoker bundle /models/model --verify")
    assert "RUN" not in final
    lines = final.replace("\\\n", " ").splitlines()
    said = {line.split()[0]: line for line in lines if line and not line.startswith("#")}
    assert said["USER"] == "USER 10001:10001"
    assert "http://127.0.0.1:9000/readyz" in said["HEALTHCHECK"]
    assert json.loads(said["ENTRYPOINT"].removeprefix("ENTRYPOINT ")) == ["stoker", "serve"]
    command = json.loads(said["CMD"].removeprefix("CMD "))
    assert command == ["my-pets=/models/model", "--host", "0.0.0.0", "--port", "9000"]
    assert "pip" not in final
    assert "$" not in text.replace("$PATH", "")


def test_the_manifests(made: Path, wheels: Path) -> None:
    found = manifests(packaged(made, wheels, "--name", "pets"))
    (service,) = found["compose.yaml"]["services"].values()
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["tmpfs"] == ["/tmp"]
    assert service["environment"] == {"STOKER_SERVE_TOKEN": "${STOKER_SERVE_TOKEN:-}"}
    deployment = found["kubernetes/deployment.yaml"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert container["image"] == "pets:7"
    probes = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
    assert probes == {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    # A server drains for 30 s after the pause of preStop; what is killed sooner loses requests.
    command, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    assert pod["terminationGracePeriodSeconds"] > 30 + int(seconds)
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/tmp"}
    assert container["resources"]["limits"] == {"memory": "2304Mi"}
    wanted = found["kubernetes/service.yaml"]["spec"]
    assert wanted["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert wanted["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert wanted["ports"][0]["targetPort"] == container["ports"][0]["name"]
    scaler = found["kubernetes/autoscaler.yaml"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"] == "pets"
    listed = found["kubernetes/kustomization.yaml"]["resources"]
    assert {f"kubernetes/{name}" for name in listed} | {"kubernetes/kustomization.yaml"} == {
        name for name in found if name.startswith("kubernetes/")
    }
    kserve = found["kserve/inferenceservice.yaml"]
    assert kserve["kind"] == "InferenceService"
    (inside,) = kserve["spec"]["predictor"]["containers"]
    assert inside["lifecycle"] == container["lifecycle"]
    assert (
        kserve["spec"]["predictor"]["terminationGracePeriodSeconds"] == pod["terminationGracePeriodSeconds"]
    )
    assert inside["name"] == "kserve-container"
    assert inside["readinessProbe"]["httpGet"]["path"] == "/v2/models/pets/ready"
    assert inside["securityContext"] == container["securityContext"]


@pytest.mark.parametrize(("words", "image"), [((), "my-pets:7"), (("--image", "reg.io/a:b"), "reg.io/a:b")])
def test_the_image_has_one_tag_everywhere(
    made: Path, wheels: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], image: str
) -> None:
    target = packaged(made, wheels, *words)
    assert capsys.readouterr().out.endswith(f"; build it with: docker build -t {image} {target}\n")
    named = [
        line.split()[-1]
        for file in target.rglob("*.yaml")
        for line in file.read_text().splitlines()
        if line.strip().startswith("image:")
    ]
    assert named == [image] * 3


def test_wheels_that_the_image_needs_are_demanded(made: Path, wheels: Path, capsys: Any) -> None:
    (wheels / "tensorflow_cpu-2.21.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl").unlink()
    more = made.parent / "more.txt"
    more.write_text("other.package>=2\nsome_thing\n")
    target = made.parent / "out"
    words = ["--wheelhouse", str(wheels), "--requirements", str(more)]
    assert main(["package", str(made), "-o", str(target), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"stoker: {wheels} has no wheel for tensorflow-cpu==2.21.0, other.package>=2: add it"
    )
    assert line.endswith("tensorflow-cpu==2.21.0 other.package>=2")
    assert not target.exists()


INSTALLED = """
import sys; from pathlib import Path; from stoker.serve.packaging import wheelhouse
print(wheelhouse.__file__)
wheelhouse.pack_installed(Path(sys.argv[1]))
"""


def test_a_wheel_is_packed_from_what_is_installed(tmp_path: Path) -> None:
    """As after `pip install` of a wheel, from an index, a directory or a repository, whose source is gone."""
    site, again, out = tmp_path / "site", tmp_path / "again", tmp_path / "out"
    inside = site / f"stoker-{__version__}.dist-info"
    shutil.copytree(ROOT / "src" / "stoker", site / "stoker", ignore=shutil.ignore_patterns("__pycache__"))
    inside.mkdir()
    (inside / "METADATA").write_text(f"Metadata-Version: 2.1\nName: stoker\nVersion: {__version__}\n")
    (inside / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    (inside / "entry_points.txt").write_text("[console_scripts]\nstoker = stoker.cli:main\n")
    (inside / "direct_url.json").write_text('{"url": "file:///gone"}')
    listed = [one.relative_to(site).as_posix() for one in site.rglob("*") if one.is_file()]
    extra = ["../../bin/stoker", f"{inside.name}/RECORD", "stoker/__pycache__/cli.cpython-311.pyc"]
    (inside / "RECORD").write_text("".join(f"{one},,\n" for one in [*listed, *extra]))
    out.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", INSTALLED, str(out)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(str(site)), done.stderr
    (wheel,) = out.iterdir()
    install = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", str(again)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    packed = {one for one in listed if one.startswith("stoker/")}
    assert all((again / one).read_bytes() == (site / one).read_bytes() for one in packed)
    assert (again / "bin" / "stoker").is_file()
    assert wheelhouse.pin_wheels(out, [f"stoker[serve]=={__version__}"]).startswith(f"stoker=={__version__} ")


def test_for_cuda(made: Path, wheels: Path) -> None:
    target = packaged(made, wheels, "--device", "cuda")
    found = manifests(target)
    (container,) = found["kubernetes/deployment.yaml"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    inside = found["kserve/inferenceservice.yaml"]["spec"]["predictor"]["containers"][0]
    assert inside["resources"]["limits"]["nvidia.com/gpu"] == 1
    (service,) = found["compose.yaml"]["services"].values()
    devices = service["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]
    assert "NVIDIA_VISIBLE_DEVICES=all" in (target / "Dockerfile").read_text()


def test_a_training_program(tmp_path: Path, wheels: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("print(1)")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.py").write_text("")
    target = packaged(program, wheels, "--include", str(tmp_path / "parts"))
    copied = {one.relative_to(target).as_posix() for one in (target / "program").rglob("*.py")}
    assert copied == {"program/train.py", "program/parts/a.py"}
    text = (target / "Dockerfile").read_text()
    assert 'ENTRYPOINT ["stoker", "run", "/program/train.py"]' in text
    assert "USER 10001:10001" in text
    assert "COPY --from=build --chown=10001:10001 /work /work" in text
    found = manifests(target)
    pod = found["kubernetes/job.yaml"]["spec"]["template"]["spec"]
    assert (
        found["kubernetes/claim.yaml"]["metadata"]["name"]
        == pod["volumes"][0]["persistentVolumeClaim"]["claimName"]
    )
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert set(found["compose.yaml"]["volumes"]) == {"work"}


def test_the_linter_has_nothing_to_say(made: Path, wheels: Path) -> None:
    linter = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint is not installed")
    program = made.parent / "train.py"
    program.write_text("")
    for path, words in ((made, []), (made, ["--device", "cuda"]), (program, [])):
        file = packaged(path, wheels, "--force", *words) / "Dockerfile"
        done = subprocess.run([linter, str(file)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["none", "-o", "out"], "there is no none"),
        (["text.txt", "-o", "out"], "text.txt is neither a bundle nor a Python program"),
        (["wheels", "-o", "out"], "wheels is not a bundle: it has no bundle.json"),
        (["My_Pets", "-o", "wheels"], "wheels exists and is not a package; choose another path"),
        (["My_Pets", "-o", "out", "--name", "My Pets"], "--name 'My Pets': use at most 53 lowercase letters"),
        (["My_Pets", "-o", "out", "--python", "2"], "--python '2' must be a version such as 3.11"),
        (["My_Pets", "-o", "out", "--port", "0"], "--port 0 must be between 1 and 65535"),
        (["My_Pets", "-o", "out", "--wheelhouse", "none"], "there is no directory none"),
        (["My_Pets", "-o", "out", "--wheelhouse", "My_Pets"], "bundle.json is not a wheel"),
        (["My_Pets", "-o", "out", "--include", "x"], "--include is for programs"),
        (["My_Pets", "-o", "out", "--requirements", "text.txt"], "'-r more.txt' is an option"),
    ],
)  # fmt: skip
def test_bad_requests_are_one_line_and_leave_nothing(
    made: Path, wheels: Path, words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(made.parent)
    Path("text.txt").write_text("# a comment\nnumpy>=1\n-r more.txt\n")
    before = sorted(Path().rglob("*"))
    assert main(["package", *words]) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


def test_a_changed_bundle_is_not_packaged(made: Path, wheels: Path, capsys: Any) -> None:
    (made / "saved_model" / "saved_model.pb").write_bytes(b"other")
    assert main(["package", str(made), "-o", str(made.parent / "out"), "--wheelhouse", str(wheels)]) == 2
    assert "saved_model/saved_model.pb is not what was exported" in capsys.readouterr().err


def test_a_package_is_replaced_only_when_told(made: Path, wheels: Path, capsys: Any) -> None:
    target = packaged(made, wheels)
    (target / "more").write_text("")
    assert main(["package", str(made), "-o", str(target), "--wheelhouse", str(wheels)]) == 2
    assert "exists; --force replaces it" in capsys.readouterr().err
    packaged(made, wheels, "--force")
    assert not (target / "more").exists()


def test_wheels_that_cannot_be(wheels: Path) -> None:
    (wheels / "stoker-2.0-py3-none-any.whl").write_bytes(b"")
    with pytest.raises(Exception, match=r"has stoker twice, in versions 1\.0 and 2\.0"):
        wheelhouse.pin_wheels(wheels)
    (wheels / "stoker-2.0-py3-none-any.whl").rename(wheels / "other-2.0-cp311-cp311-win_amd64.whl")
    with pytest.raises(Exception, match="is for win_amd64, and images are Linux"):
        wheelhouse.pin_wheels(wheels)


def test_what_is_trusted_goes_into_the_image(made: Path, wheels: Path, tmp_path: Path) -> None:
    key = tmp_path / "release.key"
    assert main(["bundle", "--new-key", str(key)]) == 0
    words = ("--allow-ops", "ReadFile,MatchingFiles", "--require-signature", f"{key}.pub")
    assert main(["package", str(made), "-o", str(tmp_path / "out"), "--wheelhouse", str(wheels), *words]) == 2
    assert main(["bundle", str(made), "--sign", str(key)]) == 0
    text = (packaged(made, wheels, *words) / "Dockerfile").read_text()
    public = Path(f"{key}.pub").read_text().strip()
    assert f"--verify --allow-ops ReadFile,MatchingFiles --require-signature {public}\n" in text
    entry = next(line for line in text.splitlines() if line.startswith("ENTRYPOINT"))
    assert json.loads(entry.removeprefix("ENTRYPOINT ")) == ["stoker", "serve", *words[:3], public]


@pytest.mark.parametrize("version", ["", "2.21.0; touch x", "2.21.0\nRUN x", None, 7])
def test_a_version_that_is_none_is_no_argument_of_pip(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], version: Any
) -> None:
    description = json.loads((made / "bundle.json").read_text())
    description["versions"]["tensorflow"] = version
    (made / "bundle.json").write_text(json.dumps(description))
    assert main(["package", str(made), "-o", str(tmp_path / "out")]) == 2
    assert "does not say which version of tensorflow" in capsys.readouterr().err
