"""The same model behind LitServe, with its batching.

python litserve_peer.py SAVED_MODEL PORT
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import litserve
import numpy as np


class Api(litserve.LitAPI):
    def setup(self, device):
        import tensorflow as tf

        self.tf = tf
        self.model = tf.saved_model.load(sys.argv[1])
        self.function = self.model.signatures["serving_default"]

    def decode_request(self, request):
        return np.asarray(request["instances"][0], np.float32)

    def batch(self, inputs):
        return np.stack(inputs)

    def predict(self, rows):
        return self.function(input=self.tf.constant(rows))["output"].numpy()

    def unbatch(self, answers):
        return list(answers)

    def encode_response(self, answer):
        return {"predictions": [answer.tolist()]}


if __name__ == "__main__":
    api = Api(max_batch_size=64, batch_timeout=0.002, api_path="/predict")
    server = litserve.LitServer(api, accelerator="cpu")
    server.run(port=int(sys.argv[2]), log_level="critical", generate_client_file=False)
