"""One JSON object per line; missing values are allowed."""

import json
import tempfile
from pathlib import Path

import stoker

path = Path(tempfile.mkdtemp(), "events.jsonl")
rows = [
    {"user": f"u{i % 7}", "seconds": i / 3 if i % 5 else None, "clicked": i % 2 == 0} for i in range(1000)
]
path.write_text("\n".join(json.dumps(row) for row in rows))

dataset = stoker.data.jsonl(path, label="clicked", batch_size=100, shuffle=True, cache=path.parent)
print(dataset.features)
inputs, labels = next(iter(dataset))
print({name: value.dtype.name for name, value in inputs.items()}, labels.shape)
