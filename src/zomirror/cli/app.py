"""The list of commands, their exit codes, and errors printed as one sentence instead of a traceback."""

from __future__ import annotations

import inspect
import shlex
import textwrap
import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from zomirror.cli.commands import attack, bench, explain, minimize, report, reproduce, runs, serve, studio, train
from zomirror.cli.show import warn
from zomirror.errors import ArgumentError, ArgumentTypeError, ZomirrorError
from zomirror.version import __version__

OK, FAILED, USAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


class Terminated(BaseException):
    """SIGTERM was received; a BaseException, so that no handler takes it for an error of the model."""


def _flags_alone(params: list[Any]) -> list[Any]:
    """The parameters, with no type shown behind options that take no value."""
    for one in params:
        if getattr(one, "is_flag", False) and one.metavar is None:
            one.metavar = ""
    return params


class Command(TyperCommand):
    """A command whose help shows flags as flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters and --help."""
        return _flags_alone(super().get_params(ctx))


class Commands(TyperGroup):
    """The commands of zomirror; --debug is accepted anywhere on the line."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters and --help."""
        return _flags_alone(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remove --debug, wherever it is before a `--`."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta["debug"] = "--debug" in args[:end]
        return super().parse_args(ctx, [arg for i, arg in enumerate(args) if arg != "--debug" or i > end])

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn an error into a sentence and an exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            warn("stopped by Ctrl-C")
            raise typer.Exit(INTERRUPTED) from None
        except runs.StoppedRun as stop:
            warn(f"stopped; to resume: zomirror runs resume {shlex.quote(str(stop.run_dir))}")
            raise typer.Exit(128 + stop.number) from None
        except Terminated:
            warn("stopped by SIGTERM")
            raise typer.Exit(TERMINATED) from None
        except ZomirrorError as error:
            self._print_error(ctx, str(error))
            raise typer.Exit(USAGE if isinstance(error, ArgumentError | ArgumentTypeError) else FAILED) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except OSError as error:
            self._print_error(ctx, str(error))
            raise typer.Exit(FAILED) from None
        except MemoryError as error:
            self._print_error(ctx, f"not enough memory ({error}): give fewer dimensions, inputs or rows at a time")
            raise typer.Exit(FAILED) from None
        except Exception as error:
            if _is_usage(error):
                raise
            self._print_error(ctx, f"{type(error).__name__}: {error} (a bug in zomirror; --debug shows the traceback)")
            raise typer.Exit(FAILED) from None

    @staticmethod
    def _print_error(ctx: Any, sentence: str) -> None:
        if ctx.meta.get("debug"):
            warn(traceback.format_exc().rstrip())
        warn(f"error: {sentence}")


def _is_usage(error: Exception) -> bool:
    """Whether typer prints this error itself: a wrong option, a missing argument."""
    return hasattr(error, "exit_code") and hasattr(error, "format_message")


def _version(*, asked: bool) -> None:
    if asked:
        typer.echo(f"zomirror {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="zomirror",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 failed, or nothing valid was found; 2 wrong usage; "
    "130 stopped by Ctrl-C; 143 stopped by SIGTERM.",
)


@app.callback()
def zomirror_(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda asked: _version(asked=asked),
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; accepted anywhere on the line.")
    ] = False,
) -> None:
    """Explain classifiers and minimise functions of which only the outputs are known."""


_COMMANDS: dict[Callable[..., None], str] = {
    explain.explain: """
        zomirror explain digits:7
        zomirror explain net.onnx photo.jpg --regions superpixels
        zomirror explain bank:model loans.csv:3 --fixed age --answers 3""",
    attack.attack: """
        zomirror attack digits:7 --target 3
        zomirror attack net.onnx photo.png --run-dir runs/photo""",
    minimize.minimize: """
        zomirror minimize simulator:loss --dim 1000 --l1 0.1 --bounds -1,1
        zomirror minimize simulator:loss --x0 start.npy --run-dir runs/first""",
    report.report: """
        zomirror report explanations""",
    serve.serve: """
        zomirror serve net.onnx --name digits
        zomirror serve predictor loans.csv --predictor-host loans-predictor --name loans
        zomirror serve http://127.0.0.1:8081/v1/models/reviews:predict --features words""",
    studio.studio: """
        zomirror studio lenet
        zomirror studio bank:model loans.csv --fixed age
        zomirror studio net.onnx photo.jpg other.jpg""",
    train.train: """
        zomirror train lenet""",
    reproduce.reproduce: """
        zomirror reproduce mnist --images-per-class 1""",
    bench.bench: """
        zomirror bench""",
}
"""Each command and its examples, which its help shows first."""


def _help(command: Any, examples: str) -> str:
    r"""The docstring and the examples; \b keeps the lines as they are."""
    return f"{inspect.cleandoc(command.__doc__)}\n\n\b\n{textwrap.indent(inspect.cleandoc(examples), '  ')}"


for _command, _examples in _COMMANDS.items():
    app.command(_command.__name__, cls=Command, help=_help(_command, _examples))(_command)
app.add_typer(runs.app, name="runs")
