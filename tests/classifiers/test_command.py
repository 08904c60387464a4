"""Programs as classifiers: honest ones give their scores, and the others a typed error, and leave nothing behind."""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.support.onnx_models import WEIGHTS
from zomirror.classifiers import as_classifier, command_classifier, command_function
from zomirror.classifiers.command import framing
from zomirror.classifiers.command.framing import FRAMINGS, LinesAnswer, NpyAnswer, encode_npy
from zomirror.classifiers.protocol import MalformedError
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

X = np.random.default_rng(6).normal(size=(7, 4))
PREDICT = f"predict = lambda x: x.reshape(len(x), -1) @ np.array({WEIGHTS.tolist()})\n"
DOCS = str(framing.__doc__)
LOOP = textwrap.dedent(DOCS.split("a persistent program is\n")[1].split("`lines`")[0])
SERVER = LOOP.replace("stdin =", PREDICT + "stdin =")
LINE_LOOP = textwrap.dedent(DOCS.split("and flush it:\n")[1].split("Nothing else")[0])
LINE_PREDICT = f"predict = lambda x: [sum(a * b for a, b in zip(x, w)) for w in {WEIGHTS.T.tolist()}]\n"
LINES = LINE_LOOP.replace("for line", LINE_PREDICT + "for line")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Tell whether a process is gone, or a zombie that only waits to be reaped, within so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


# Honest programs


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize(("style", "code"), [("npy", SERVER), ("lines", LINES)])
def test_scores_are_the_programs(style, code, persistent):
    """The programs are those in the documentation of the framings, word for word."""
    with command_classifier(python(code), framing=style, persistent=persistent) as classifier:
        np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-12)
        np.testing.assert_allclose(classifier(X[:1]), X[:1] @ WEIGHTS, rtol=1e-12)
        np.testing.assert_allclose(classifier(X.reshape(7, 2, 2)), X @ WEIGHTS, rtol=1e-12)


def test_a_persistent_program_is_started_once_and_others_for_every_batch(tmp_path):
    starts = tmp_path / "starts"
    code = f"open({str(starts)!r}, 'a').write('x')\n" + LINES
    for persistent, count in ((True, 1), (False, 4)):
        starts.write_text("")
        with command_classifier(python(code), framing="lines", persistent=persistent, batch_rows=2) as classifier:
            classifier(X)
        assert len(starts.read_text()) == count


def test_float32_is_kept_on_the_way_in_and_out():
    with command_classifier(python(SERVER.replace("@ np.array", "@ np.float32"))) as classifier:
        scores = classifier(X.astype(np.float32))
        assert scores.dtype == np.float32


def test_large_batches_cannot_lock_both_sides():
    """The child writes an answer for every line it reads: both pipes fill up long before either side is done."""
    code = "import sys\nfor line in sys.stdin: print(*line.split(), flush=True)"
    batch = np.random.default_rng(0).normal(size=(3000, 40))
    assert batch.nbytes > 10 * 2**16
    with command_classifier(python(code), framing="lines") as classifier:
        np.testing.assert_array_equal(classifier(batch), batch)


def test_threads_take_turns():
    with command_classifier(python(LINES), framing="lines") as classifier, ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(classifier, [X[i : i + 1] for i in range(7)]))
    np.testing.assert_allclose(np.vstack(parts), X @ WEIGHTS, rtol=1e-12)


def test_a_function_has_one_number_per_row():
    one = "import sys\nfor line in sys.stdin: print(sum(map(float, line.split())), flush=True)"
    for code, style in ((one, "lines"), (LOOP.replace("predict(batch)", "batch.sum(axis=1)"), "npy")):
        with command_function(python(code), framing=style) as function:  # type: ignore[arg-type]
            np.testing.assert_allclose(function(X), X.sum(axis=1), rtol=1e-12)
            assert function(X).shape == (7,)


def test_a_pickle_starts_its_own_program():
    with command_classifier(python(LINES), framing="lines", batch_rows=3) as classifier:
        classifier(X)
        again = pickle.loads(pickle.dumps(classifier))  # noqa: S301
        assert again == classifier
        same: Any = as_classifier(again)
        assert same is again
        with again:
            np.testing.assert_array_equal(again(X), classifier(X))
            assert pid_of(again) != pid_of(classifier)
        assert "framing='lines'" in repr(classifier)


def pid_of(classifier: Any) -> int:
    return int(classifier.program._slot.child._process.pid)


def test_a_forked_process_starts_its_own_program():
    with command_classifier(python(LINES), framing="lines") as classifier:
        classifier(X)
        first, child = pid_of(classifier), classifier.program._slot.child
        child.owner = -1  # type: ignore[union-attr]  # as the child of a fork would see it
        np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-12)
        assert pid_of(classifier) != first
        assert not gone(first, 0.1)
        child.end()  # type: ignore[union-attr]


def test_closing_lets_the_program_finish_and_the_next_batch_starts_it_again(tmp_path):
    mark = tmp_path / "finished"
    classifier = command_classifier(python(LINES + f"open({str(mark)!r}, 'w').close()"), framing="lines")
    classifier(X)
    pid = pid_of(classifier)
    classifier.close()
    assert mark.exists()
    assert gone(pid, 0.5)
    classifier.close()
    np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-12)
    classifier.close()


def test_closing_does_not_wait_for_a_program_that_will_not_end():
    code = LINES + "import time; time.sleep(60)"
    classifier = command_classifier(python(code), framing="lines")
    classifier(X)
    pid, start = pid_of(classifier), time.monotonic()
    classifier.close()
    assert time.monotonic() - start < 4
    assert gone(pid, 0.5)


def test_nothing_is_left_when_the_interpreter_ends_or_the_classifier_is_dropped():
    code = f"""
import numpy as np
from zomirror.classifiers import command_classifier
classifier = command_classifier({python(LINES + "import time; time.sleep(60)")!r}, framing="lines")
classifier(np.ones((1, 4)))
print(classifier.program._slot.child._process.pid)
"""
    done = subprocess.run(python(code), capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert gone(int(done.stdout))
    classifier = command_classifier(python(LINES), framing="lines")
    classifier(X)
    pid = pid_of(classifier)
    del classifier
    assert gone(pid)


# Programs that hang


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path):
    """The grandchild is in the group too; it ignores every signal that it can."""
    pids = tmp_path / "pids"
    stubborn = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); signal.signal(1, signal.SIG_IGN); time.sleep(60)"
    )
    code = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {stubborn!r}])
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""
    classifier = command_classifier(python(code), timeout=3.0)
    start = time.monotonic()
    with pytest.raises(OracleError, match=r"failed on 7 rows: no answer in 3 s, so it was ended \(signal SIGKILL\)"):
        classifier(X)
    assert 2.9 < time.monotonic() - start < 9
    assert [gone(int(pid)) for pid in pids.read_text().split()] == [True, True]


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(60)",
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import sys, time; sys.stdin.close(); time.sleep(60)",
        "import os, time; os.read(0, 1); os.write(1, b'\\x93NUMPY\\x01\\x00'); time.sleep(60)",
        "import sys\nwhile True: sys.stdin.buffer.read(1)",
        "while True: pass",
    ],
)
@pytest.mark.parametrize("persistent", [True, False])
def test_whatever_it_waits_for_the_deadline_holds(code, persistent):
    classifier = command_classifier(python(code), timeout=0.7, persistent=persistent)
    start = time.monotonic()
    with pytest.raises(OracleError, match=r"no answer in 0\.7 s"):
        classifier(np.ones((2000, 40)))
    assert time.monotonic() - start < 6


def test_a_program_that_answers_and_does_not_end_is_ended():
    code = LINES + "import time; time.sleep(60)"
    with pytest.raises(OracleError, match="no answer in 1 s"):
        command_classifier(python(code), framing="lines", persistent=False, timeout=1.0)(X)


def test_ctrl_c_ends_the_program_too():
    classifier = command_classifier(python("import time; time.sleep(60)"))
    seen = []

    def interrupt(*_: object) -> None:
        seen.append(pid_of(classifier))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            classifier(X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert gone(seen[0])


# Programs that die


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "import sys; sys.exit('no GPU found')",
            r"ended (before it had answered|by itself) \(exit code 1; its last words: no GPU found\)",
        ),
        ("raise SystemExit(7)", r"\(exit code 7\)"),
        ("import os; os.kill(os.getpid(), 11)", r"\(signal SIGSEGV\)"),
        ("", "ended before it had answered|ended by itself"),
        ("print(1, 2)", "ended before it had answered|ended by itself"),
        ("import sys; sys.stderr.write('\\x1b[31m' + 'y' * 9999)", r"last words: (\?\[31m)?y{400,500}\)"),
    ],
)
def test_a_program_that_dies_leaves_its_last_words(code, message, persistent):
    first = "import sys; sys.stdin.readline()\n"  # so that it is asked before it ends
    with pytest.raises(OracleError, match=message):
        command_classifier(python(first + code), framing="lines", persistent=persistent, timeout=20.0)(X)


def test_a_failure_after_the_answer_counts():
    with pytest.raises(OracleError, match=r"it answered, but ended with an error \(exit code 3\)"):
        command_classifier(python(LINES + "sys.exit(3)"), framing="lines", persistent=False)(X)


def test_a_death_is_noticed_though_a_grandchild_holds_the_pipe():
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    start = time.monotonic()
    with pytest.raises(OracleError, match=r"ended before it had answered|ended by itself"):
        command_classifier(python(code), timeout=30.0)(X)
    assert time.monotonic() - start < 10


def test_the_next_batch_starts_anew_after_a_death(tmp_path):
    mark = tmp_path / "mark"
    code = f"import os\nif not os.path.exists({str(mark)!r}): open({str(mark)!r}, 'w'); os._exit(1)\n" + LINES
    with command_classifier(python(code), framing="lines") as classifier:
        with pytest.raises(OracleError):
            classifier(X)
        np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-12)


def test_a_program_killed_between_batches_is_missed():
    with command_classifier(python(LINES), framing="lines") as classifier:
        classifier(X)
        os.kill(pid_of(classifier), signal.SIGKILL)
        time.sleep(0.2)
        with pytest.raises(OracleError, match=r"it ended by itself \(signal SIGKILL\)"):
            classifier(X)
        np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-12)


def test_who_ends_between_batches_has_last_words_too():
    code = (
        LINES.replace("in sys.stdin", "in (sys.stdin.readline() for _ in range(7))")
        + "sys.stderr.write('out of memory'); sys.exit(3)"
    )
    with command_classifier(python(code), framing="lines") as classifier:
        classifier(X)
        assert gone(pid_of(classifier), 20.0)
        with pytest.raises(OracleError, match=r"it ended by itself \(exit code 3; its last words: out of memory\)"):
            classifier(X)


# Programs that talk nonsense, or too much


def ask_twice(classifier: Any) -> None:
    for _ in range(2):
        classifier(X)


@pytest.mark.parametrize(
    ("style", "code", "message"),
    [
        (
            "npy",
            "print('Loading model ...', flush=True); import time; time.sleep(60)",
            "an array in .npy format and nothing else|wrote before it was asked",
        ),
        (
            "npy",
            LOOP.replace("predict(batch)", "np.array([[{}, {}]] * 7)"),
            "array of real numbers",
        ),
        ("npy", LOOP.replace("predict(batch)", "np.zeros((7, 3), complex)"), "array of real numbers"),
        (
            "npy",
            LOOP.replace("predict(batch)", "np.zeros((6, 3))"),
            r"expected scores of shape \(7, classes >= 2\), got \(6, 3\)",
        ),
        ("npy", LOOP.replace("predict(batch)", "np.zeros(7)"), r"got \(7,\)"),
        (
            "npy",
            LOOP.replace("predict(batch)", "np.broadcast_to(0.0, (7, 10**6))"),
            "expected at most 1000000 bytes, got an array of 56000000",
        ),
        (
            "npy",
            LOOP.replace(
                "\n    sys.stdout.buffer.flush()", "; sys.stdout.buffer.write(b'!!'); sys.stdout.buffer.flush()"
            ).replace("predict(batch)", "np.zeros((7, 3))"),
            "2 bytes after it|wrote before it was asked",
        ),
        ("lines", "print('ready', flush=True)\n" + LINES, "got more|something else in line 1|wrote before"),
        ("lines", LINES.replace("print(", "print('score:', "), "something else in line 1"),
        ("lines", LINES.replace("print(", "print(1, end=';'); print("), "something else in line 1"),
        (
            "lines",
            "import sys\nfor i, line in enumerate(sys.stdin): print(*range(2 + i % 2), flush=True)",
            "the same number of values in every line",
        ),
        ("lines", "import sys\nfor line in sys.stdin: print(flush=True)", "the same number of values in every line"),
        ("lines", "import sys\nfor line in sys.stdin: print(1, flush=True)", r"got \(7, 1\): turn one score s per row"),
        ("lines", "import sys\nfor line in sys.stdin: print('1 2\\n3 4', flush=True)", "expected 7 lines, got more"),
        ("lines", "import sys\nwhile True: sys.stdout.write('1' * 65536)", "expected at most 1000000 bytes, got more"),
        (
            "lines",
            "import sys\nwhile True: sys.stdout.write('1 2\\n' * 9999)",
            "expected 7 lines, got more|wrote before it was asked",
        ),
    ],
)
@pytest.mark.parametrize("persistent", [True, False])
def test_nonsense_is_refused_in_a_sentence(style, code, message, persistent):
    """A second batch is asked too, as a program may be one answer ahead."""
    with command_classifier(
        python(code), framing=style, timeout=20.0, max_bytes=1_000_000, persistent=persistent
    ) as classifier:
        start = time.monotonic()
        # On a busy machine a program that writes without reading may be found out before it is asked.
        with pytest.raises(OracleError, match=f"{message}|wrote before it was asked"):
            ask_twice(classifier)
        assert time.monotonic() - start < 10


def test_a_program_may_write_to_stderr_as_much_as_it_likes():
    code = LINES.replace("    print", "    sys.stderr.write('warning ' * 99999)\n    print")
    with command_classifier(python(code), framing="lines") as classifier:
        for _ in range(2):
            np.testing.assert_allclose(classifier(X), X @ WEIGHTS, rtol=1e-12)


def test_scores_that_are_not_numbers_are_left_to_the_caller():
    code = "import sys\nfor line in sys.stdin: print('nan inf', flush=True)"
    with command_classifier(python(code), framing="lines") as classifier:
        scores = classifier(X)
        assert np.isnan(scores[:, 0]).all()
        assert np.isinf(scores[:, 1]).all()


DAEMON = """
import os, sys, time

def daemonise(path, keep):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3):
                os.close(fd)
            with open(path, "w") as file:
                file.write(str(os.getpid()))
            end = time.time() + 60  # where nobody ends it
            while time.time() < end:
                time.sleep(0.05)
                if keep and os.fork():
                    os._exit(0)  # another process number each time
            os._exit(0)
        os._exit(0)
    while not os.path.exists(path) or not open(path).read():
        time.sleep(0.01)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="daemons are found through /proc")
@pytest.mark.parametrize(
    ("rest", "persistent"),
    [
        ("time.sleep(60)", True),  # it hangs beside its daemon
        ("os._exit(3)", True),  # it leaves its daemon behind
        ("for line in sys.stdin: print(1, 2, flush=True)", False),  # it answers, and its daemon stays
    ],
    ids=["hangs", "dies", "answers"],
)
def test_a_program_that_daemonises_does_not_outlive_its_deadline(rest, persistent, tmp_path):
    note = tmp_path / "pid"
    code = f"{DAEMON}\ndaemonise({str(note)!r}, False)\n{rest}"
    classifier = command_classifier(python(code), framing="lines", timeout=2.0, persistent=persistent)
    if persistent:
        with pytest.raises(OracleError):
            classifier(X)
    else:
        np.testing.assert_array_equal(classifier(X), np.tile([1.0, 2.0], (7, 1)))
    assert gone(int(note.read_text()), 1.0)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="daemons are found through /proc")
def test_a_daemon_that_changes_its_number_is_ended_too(tmp_path):
    note = tmp_path / "pid"
    code = f"{DAEMON}\ndaemonise({str(note)!r}, True)\ntime.sleep(60)"
    with pytest.raises(OracleError, match=r"no answer in 1 s"):
        command_classifier(python(code), framing="lines", timeout=1.0)(X)
    marked = []
    for environ in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            marked += [environ] if str(note).encode() in environ.read_bytes() else []
        except OSError:
            continue
    assert not marked


# What it may see and do


def test_it_sees_the_allowed_variables_only(monkeypatch):
    monkeypatch.setenv("ZOM_SECRET", "canary")
    monkeypatch.setenv("ZOM_WANTED", "1")
    code = """
import os, sys
for line in sys.stdin:
    print(len([n for n in os.environ if n.startswith("ZOM")]), os.environ.get("ZOM_WANTED", 0), flush=True)
"""
    for names, seen in (((), [0, 0]), (("ZOM_WANTED", "ZOM_MISSING"), [1, 1])):
        with command_classifier(python(code), framing="lines", environment=names) as classifier:
            np.testing.assert_array_equal(classifier(X[:1]), [seen])


def test_there_is_no_shell(tmp_path):
    mark = tmp_path / "mark"
    code = "import sys\nfor line in sys.stdin: print(len(sys.argv[1]), sys.argv[1].count(';'), flush=True)"
    argument = f"a; touch {mark} $(touch {mark})"
    with command_classifier([*python(code), argument], framing="lines") as classifier:
        np.testing.assert_array_equal(classifier(X[:1]), [[len(argument), 1]])
    assert not mark.exists()
    with pytest.raises(ArgumentTypeError, match="no shell is used, split it"):
        command_classifier("python -c pass")


def test_it_runs_where_it_is_told_to(tmp_path):
    (tmp_path / "weights").write_text("3 4")
    code = "import sys\nfor line in sys.stdin: print(open('weights').read(), flush=True)"
    with command_classifier(python(code), framing="lines", cwd=str(tmp_path)) as classifier:
        np.testing.assert_array_equal(classifier(X[:1]), [[3.0, 4.0]])
    with pytest.raises(OracleError, match="cannot be started"):
        command_classifier(python(code), cwd=str(tmp_path / "nowhere"))(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"args": []}, "expected args to be a list of strings"),
        ({"args": ["a", 3]}, "expected args to be a list of strings"),
        ({"args": ["a\0b"]}, "expected args to be a list of strings"),
        ({"args": ["no-such-program-here"]}, "found none at 'no-such-program-here'"),
        ({"framing": "csv"}, "expected framing to be one of"),
        ({"timeout": 0.0}, "expected timeout > 0"),
        ({"max_bytes": 0}, "expected max_bytes"),
        ({"batch_rows": 0}, "expected batch_rows"),
        ({"args": None}, "expected args to be a list of strings, got None"),
        ({"args": 5}, "expected args to be a list of strings, got 5"),
        ({"args": b"python"}, "no shell is used, split it"),
        ({"args": {"python": 1}}, "expected args to be a list of strings"),
        ({"persistent": np.ones(2)}, "expected persistent to be True or False"),
        ({"persistent": "no"}, "expected persistent to be True or False"),
        ({"environment": None}, "expected environment to be a list of names"),
        ({"environment": "HOME"}, "expected environment to be a list of names"),
        ({"environment": [3]}, "expected environment to hold names"),
        ({"cwd": 3}, "expected cwd to be a string"),
        ({"cwd": "a\0b"}, "expected cwd to be a directory"),
        ({"timeout": None}, "expected timeout to be a number"),
        ({"max_bytes": "many"}, "expected max_bytes to be an integer"),
    ],
)
def test_bad_arguments_are_refused_when_made(options, message):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        command_classifier(**{"args": python(""), **options})


# The framings, byte by byte


def fed(answer: Any, data: bytes, size: int) -> Any:
    for i in range(0, len(data), size):
        answer.feed(data[i : i + size])
    return answer


KINDS: Any = [np.float32, np.float64, np.float16, np.int64, np.int16, np.int8, np.uint8, np.bool_, np.dtype(">f8")]
ARRAYS: Any = hnp.arrays(st.sampled_from(KINDS), st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(ARRAYS, st.integers(1, 50), st.booleans(), st.sampled_from([(1, 0), (2, 0)]))
def test_an_array_is_read_from_any_pieces_and_not_before_its_end(array, size, fortran, version):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asfortranarray(array) if fortran else array, version=version)
    data = file.getvalue()
    whole = fed(NpyAnswer(len(array), 10_000), data, size)
    assert whole.complete
    np.testing.assert_array_equal(whole.values(), array)
    if array.nbytes:
        assert not fed(NpyAnswer(len(array), 10_000), data[:-1], size).complete
    with pytest.raises(MalformedError, match="1 bytes after it"):
        whole.feed(b"\0")


@given(st.data())
def test_no_damage_to_an_array_does_more_than_a_complaint(data):
    """It is refused, or read as other numbers, or awaited to its end: never anything else."""
    damaged = bytearray(encode_npy(X))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, 130))] = data.draw(st.integers(0, 255))
    answer = NpyAnswer(7, 10_000)
    try:
        answer.feed(bytes(damaged))
    except MalformedError:
        return
    assert not answer.complete or answer.values().dtype.kind in "biuf"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x93NUMPY\x03\x00" + b"\0" * 9, "version 1.0 or 2.0"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"\0" * 9, "header of at most 10000 bytes"),
        (
            b"\x93NUMPY\x01\x00\x20\x00" + b"__import__('os').getpid()      \n" + b"\0" * 9,
            "header of an array of real numbers",
        ),
        (b"\x93NUMPY\x01\x00\x00\x10" + b"(" * 4096, "header of an array of real numbers"),
        (b"{'descr'", "an array in .npy format and nothing else"),
    ],
)
def test_headers_that_are_not_headers_are_refused(data, message):
    with pytest.raises(MalformedError, match=message):
        NpyAnswer(7, 10_000).feed(data)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 4))), st.integers(1, 30))
def test_lines_carry_every_number_exactly(array, size):
    encode, begin = FRAMINGS["lines"]
    answer = fed(begin(len(array), 100_000), encode(array), size)
    assert answer.complete
    np.testing.assert_array_equal(answer.values(), array)


def test_lines_may_have_commas_and_the_ends_of_other_systems():
    answer = fed(LinesAnswer(2, 100), b"1,2, 3\r\n4 5\t6\r\n", 3)
    np.testing.assert_array_equal(answer.values(), [[1, 2, 3], [4, 5, 6]])


def test_one_program_is_not_asked_by_two_threads_at_once():
    """A program that notes when it is between reading and answering would see the other batch."""
    with command_classifier(python(SERVER), batch_rows=2) as classifier:
        results: list[Any] = []
        threads = [threading.Thread(target=lambda: results.append(classifier(X))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 3
    for scores in results:
        np.testing.assert_allclose(scores, X @ WEIGHTS, rtol=1e-12)
