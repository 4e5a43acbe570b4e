"""`tensorflow_model_server`: TensorFlow Serving's command, answered by `stoker serve`.

    tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name=half --model_base_path=/models/half
    tensorflow_model_server --rest_api_port=8501 --model_config_file=models.config

The options are TensorFlow Serving's, so that images, charts and scripts that start it need not change. Options without
a meaning here are accepted and named in the log. Limits are TensorFlow Serving's, too: messages of up to 2 GiB, any
number of rows, all interfaces, no token; `stoker serve` is the safer way to start the same server.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from stoker.chatter import quiet_tensorflow
from stoker.cli.serve import ServerAddress, check_installed, listen_and_serve
from stoker.errors import StokerError, UsageError
from stoker.logs import LOGGER, use_handler
from stoker.printing import print_note
from stoker.serve.plane.settings import ServerSettings, VersionPolicy
from stoker.serve.server.log import ServerLog
from stoker.version import __version__

_PROGRAM = "tensorflow_model_server"
_MOST_BYTES = (1 << 31) - 1
_NEVER_S = 1e8
# Options for TensorFlow Serving's own threads and files, or for what is always on or off here.
_WITHOUT_MEANING = (
    "allow_version_labels_for_unavailable_models", "batching_parameters_file", "enable_batching",
    "enable_cors_support", "enable_grpc_healthcheck_service", "enable_profiler", "enable_signature_method_name_check",
    "enable_per_model_batching_parameters", "flush_filesystem_caches", "grpc_max_threads",
    "load_retry_interval_micros", "max_num_load_retries", "mixed_precision", "num_load_threads", "num_unload_threads",
    "per_process_gpu_memory_fraction", "remove_unused_fields_from_bundle_metagraph", "rest_api_enable_cors_support",
    "rest_api_num_threads", "skip_initialize_tpu", "tensorflow_inter_op_parallelism",
    "tensorflow_intra_op_parallelism", "tensorflow_session_config_file", "tensorflow_session_parallelism",
    "thread_pool_factory_config_file", "use_tflite_model", "xla_cpu_compilation_enabled",
)  # fmt: skip
_UNSUPPORTED = ("platform_config_file", "ssl_config_file", "use_alts_credentials")


class _ModelServerParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {_PROGRAM} --help")


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise UsageError(f"{text!r} must be true or false")
    return text.lower() in ("true", "1")


def make_parser() -> argparse.ArgumentParser:
    """Return a parser with the options of TensorFlow Serving."""
    parser = _ModelServerParser(
        _PROGRAM,
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--port", type=int, default=8500, help="of gRPC (8500); 0 for none")
    add("--grpc_socket_path", default="", help="a Unix socket to serve gRPC on, too")
    add(
        "--rest_api_port",
        type=int,
        default=0,
        help="the HTTP port; 0 picks a free one on the loopback address (0)",
    )
    add("--rest_api_timeout_in_ms", type=int, default=30000, help="the longest wait for an answer (30000)")
    add("--model_name", default="default", help="the name of the model at --model_base_path (default)")
    add("--model_base_path", default="", help="a directory of numbered SavedModels or bundles")
    add("--model_config_file", default="", help="a list of models, a ModelServerConfig as text")
    add(
        "--model_config_file_poll_wait_seconds",
        type=float,
        default=0,
        help="seconds between reads of the model list (0: read it once)",
    )
    add(
        "--file_system_poll_wait_seconds",
        type=float,
        default=1,
        help="seconds between checks for new versions (1)",
    )
    add("--saved_model_tags", default="serve", help="tags of the graph to load, separated by commas (serve)")
    add("--grpc_channel_arguments", default="", help="options of the gRPC server: name=value,...")
    add("--monitoring_config_file", default="", help="a MonitoringConfig as text: the path of the metrics")
    add(
        "--num_request_iterations_for_warmup",
        type=int,
        default=1,
        help="how many times to send each warm-up request (1)",
    )
    add(
        "--enable_model_warmup",
        type=_truth,
        nargs="?",
        const=True,
        default=True,
        help="send warm-up requests at all (true)",
    )
    add(
        "--prefer_tflite_model",
        type=_truth,
        nargs="?",
        const=True,
        default=False,
        help="load model.tflite (false)",
    )
    add("--version", action="version", version=f"TensorFlow ModelServer: Stoker {__version__}")
    for name in (*_WITHOUT_MEANING, *_UNSUPPORTED):
        add(f"--{name}", nargs="?", const="true", help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Serve as TensorFlow Serving would, and return the exit code."""
    try:
        args = make_parser().parse_args(argv)
        with use_handler(ServerLog()):
            return _run(args, LOGGER.info)
    except StokerError as error:
        print_note(str(error))
        return error.exit_code


def _run(args: argparse.Namespace, say: Callable[[str], None]) -> int:
    for name in _UNSUPPORTED:
        if getattr(args, name) is not None:
            raise UsageError(
                f"--{name} is not supported: use stoker serve, with --tls-cert and --tls-key for TLS"
            )
    if bool(args.model_config_file) == bool(args.model_base_path):
        raise UsageError("give either --model_base_path or --model_config_file")
    check_installed(_PROGRAM, grpc=True)
    given = [f"--{name}" for name in _WITHOUT_MEANING if getattr(args, name) is not None]
    if given:
        say(f"options that have no effect here: {', '.join(given)}")
    settings = _make_settings(args)
    host = "0.0.0.0" if args.rest_api_port else "127.0.0.1"
    return listen_and_serve(settings, ServerAddress(host, args.rest_api_port, args.port), None, 1, say)


def _make_settings(args: argparse.Namespace) -> ServerSettings:
    models = {args.model_name: args.model_base_path}
    policies = {args.model_name: VersionPolicy(latest=1)}
    metrics_path = ""
    if args.model_config_file or args.monitoring_config_file:
        with quiet_tensorflow():
            from stoker.serve.plane import model_config
        if args.model_config_file:
            sources = model_config.read_config(args.model_config_file)
            models = {name: str(one.path) for name, one in sources.items()}
            policies = {name: one.policy for name, one in sources.items()}
        if args.monitoring_config_file:
            found = model_config.read_text_message(
                args.monitoring_config_file, "MonitoringConfig"
            ).prometheus_config
            metrics_path = (found.path or "/monitoring/prometheus/metrics") if found.enable else ""
    return ServerSettings(
        models,
        policies=policies,
        body_bytes=_MOST_BYTES,
        held_bytes=2 * _MOST_BYTES,
        string_bytes=_MOST_BYTES,
        rows=_MOST_BYTES,
        timeout=args.rest_api_timeout_in_ms / 1000,
        reload_s=args.file_system_poll_wait_seconds if args.file_system_poll_wait_seconds > 0 else _NEVER_S,
        grpc=f"0.0.0.0:{args.port}" if args.port else "",
        grpc_socket=args.grpc_socket_path,
        grpc_arguments=_split_arguments(args.grpc_channel_arguments),
        metrics_path=metrics_path,
        model_config=args.model_config_file,
        model_config_poll_s=max(0.0, args.model_config_file_poll_wait_seconds),
        waits_for_models=True,
        reload_requests=True,
        prefer_litert=args.prefer_tflite_model,
        tags=tuple(one for one in args.saved_model_tags.split(",") if one),
        warm_repeats=args.num_request_iterations_for_warmup if args.enable_model_warmup else 0,
    )


def _split_arguments(text: str) -> dict[str, str]:
    found = {}
    for one in filter(None, text.split(",")):
        name, sign, value = one.partition("=")
        if not sign:
            raise UsageError(f"--grpc_channel_arguments: {one!r} must be name=value")
        found[name] = value
    return found


if __name__ == "__main__":
    sys.exit(main())
