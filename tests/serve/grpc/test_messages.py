"""The descriptor set that the server reads is what the .proto files say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("grpc_tools")

from google.protobuf import descriptor_pb2

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_descriptor_set_is_compiled_from_the_files(tmp_path: Path) -> None:
    made = tmp_path / "services.binpb"
    tool = ROOT / "tools/make_protos.py"
    subprocess.run([sys.executable, tool, made], check=True, capture_output=True)
    kept = ROOT / "src/stoker/serve/grpc/protos/services.binpb"
    ours, fresh = (descriptor_pb2.FileDescriptorSet.FromString(one.read_bytes()) for one in (kept, made))
    assert ours == fresh, "run make protos"
