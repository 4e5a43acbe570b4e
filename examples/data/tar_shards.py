"""Tar shards as webdataset writes them: an image, its class and a caption are one sample."""

import io
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import stoker

folder = Path(tempfile.mkdtemp())
random = np.random.default_rng(0)
for shard in range(2):
    with tarfile.open(folder / f"{shard}.tar", "w") as archive:
        for number in range(50):
            pixels = random.integers(0, 255, (24, 24, 3), dtype=np.uint8)
            members = {
                "jpg": tf.io.encode_jpeg(pixels).numpy(),
                "cls": str(number % 2).encode(),
                "txt": f"picture {number} of shard {shard}".encode(),
            }
            for extension, content in members.items():
                member = tarfile.TarInfo(f"{shard}-{number}.{extension}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))

train, held_out = stoker.data.tar(
    folder, label="cls", batch_size=16, shuffle=True, seed=1, validation_split=0.2, cache=folder / "cache"
)
inputs, labels = next(iter(train))
print(train.rows, "samples to train on,", held_out.rows, "held out")
print(inputs["jpg"].shape, inputs["txt"][0].numpy().decode(), labels.numpy())
