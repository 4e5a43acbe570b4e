"""A folder of texts for each class, read as word ids; texts of similar length share a batch."""

import random
import tempfile
from pathlib import Path

import stoker

random.seed(0)
root = Path(tempfile.mkdtemp())
for number in range(400):
    kind = ("bad", "good")[number % 2]
    (root / "reviews" / kind).mkdir(parents=True, exist_ok=True)
    words = random.choices(["the", "film", "was", kind, "very", "long"], k=random.randint(3, 60))
    (root / "reviews" / kind / f"{number}.txt").write_text(" ".join(words))

dataset = stoker.data.text(root / "reviews", batch_size=16, max_tokens=1000, seed=1, cache=root / "cache")
real = padded = 0
for ids, labels in dataset:
    real += int((ids.numpy() != 0).sum())
    padded += ids.numpy().size
print(dataset.class_names, dataset.rows, f"{padded / real:.2f} tokens with padding for each real one")
