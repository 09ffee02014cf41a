"""An S3 server in this process, as far as moto plays one, with an empty bucket."""

import logging
import uuid
from contextlib import contextmanager

import pytest


@contextmanager
def run_bucket():
    """The bucket's URL, for whoever finds server and keys in the environment, where boto looks for them."""
    pytest.importorskip("s3fs", reason="the extra s3 is not installed")
    moto = pytest.importorskip("moto.server", reason="moto, which plays the server, is not installed")
    import boto3
    import fsspec

    server = moto.ThreadedMotoServer(port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server.start()
    host, port = server.get_host_and_port()
    name = f"files-{uuid.uuid4().hex}"
    found = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "a secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in found.items():
                patch.setenv(variable, value)
            # Connections are kept by address and keys, and those of a server that has ended serve nobody.
            fsspec.get_filesystem_class("s3").clear_instance_cache()
            boto3.client("s3").create_bucket(Bucket=name)
            yield f"s3://{name}"
    finally:
        server.stop()
