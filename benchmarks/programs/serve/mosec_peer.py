"""The same model behind Mosec, with its batching.

python mosec_peer.py SAVED_MODEL --port PORT
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import orjson
from mosec import Server, Worker

# Its processes import this file again, without the arguments.
if "SAVED_MODEL" not in os.environ:
    os.environ["SAVED_MODEL"] = sys.argv.pop(1)


class Model(Worker):
    def __init__(self):
        import tensorflow as tf

        self.tf = tf
        self.model = tf.saved_model.load(os.environ["SAVED_MODEL"])
        self.function = self.model.signatures["serving_default"]

    def deserialize(self, data):
        return np.asarray(orjson.loads(data)["instances"][0], np.float32)

    def serialize(self, data):
        return orjson.dumps({"predictions": [data]}, option=orjson.OPT_SERIALIZE_NUMPY)

    def forward(self, data):
        return list(self.function(input=self.tf.constant(np.stack(data)))["output"].numpy())


if __name__ == "__main__":
    server = Server()
    server.append_worker(Model, num=1, max_batch_size=64, max_wait_time=2)
    server.run()
