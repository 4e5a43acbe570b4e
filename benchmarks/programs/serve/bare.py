"""A pinned function behind a plain ASGI application: one call for each request, no batcher, no checks.

python bare.py SAVED_MODEL PORT
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import orjson
import tensorflow as tf
import uvicorn

model = tf.saved_model.load(sys.argv[1])
function = model.signatures["serving_default"]


async def app(scope, receive, send):
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    rows = np.asarray(orjson.loads(body)["instances"], np.float32)
    answers = function(input=tf.constant(rows))["output"].numpy()
    data = orjson.dumps({"predictions": answers}, option=orjson.OPT_SERIALIZE_NUMPY)
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(data))]}
    )
    await send({"type": "http.response.body", "body": data})


uvicorn.run(app, port=int(sys.argv[2]), log_level="critical", access_log=False, lifespan="off")
