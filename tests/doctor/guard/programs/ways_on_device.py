"""All ways to read a tensor, on the software GPU. Facts as JSON."""

from __future__ import annotations

import json

from stoker.doctor import software_gpu

software_gpu.enable(count=1, memory="1GiB")

from tests.doctor.guard.ways import all_outcomes  # noqa: E402

print(json.dumps(all_outcomes()))
