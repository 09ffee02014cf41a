"""A confined process can compute and nothing else; what ends it, or holds it up, is a refusal and no more."""

import platform
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from model_examples import CLASSIFIERS, N_COMPONENTS, REGRESSORS, fitted, targets
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, StackingRegressor, VotingRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from datacollab.errors import ExchangeError
from datacollab.model import estimator_to_bytes
from datacollab.model.isolated import IsolatedClassifier, IsolatedRegressor, _process, open_isolated

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are confined on Linux alone")

Z = np.random.default_rng(3).normal(size=(50, N_COMPONENTS))
BINARY = np.arange(50) % 2


def opened(estimator, n_features=N_COMPONENTS):
    return open_isolated("skops", estimator_to_bytes(estimator), n_features)


def refusal_of(estimator, rows=Z):
    """Of reading and predicting; the estimator's own process is what it may break."""
    with pytest.raises(ExchangeError) as caught:
        opened(estimator).predict(rows)
    return caught.value


def confined(code, *, confine="confine(memory=2**28, cpu_seconds=2)"):
    """What a program prints once it is confined; it has nothing but the pipe."""
    before = (
        "import ctypes, errno, mmap, os, resource, signal, socket, subprocess, sys, threading, time\n"
        "from datacollab.model.isolated._confine import confine\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"{confine}\n"
    )
    return subprocess.run([sys.executable, "-c", before + code], check=False, capture_output=True, text=True, cwd="/")


OUT_OF_REACH = [
    "open('/etc/passwd')",
    "open('/proc/self/environ')",
    "open('/tmp/left-behind', 'w')",
    "os.listdir('/')",
    "os.stat('/etc')",
    "os.unlink('/tmp/x')",
    "os.rename('/tmp/x', '/tmp/y')",
    "socket.socket()",
    "socket.socketpair()",
    "os.pipe()",
    "os.fork()",
    "subprocess.run(['true'])",
    "os.execv('/bin/true', ['true'])",
    "os.kill(os.getppid(), 0)",
    "os.setuid(0)",
    "os.memfd_create('x')",
    "os.sched_setaffinity(0, {0})",
]
CALLS_OF_X86_64 = {
    "ptrace": "101, 16, 1, 0, 0",
    "process_vm_readv": "310, 1, 0, 0, 0, 0, 0",
    "prlimit64": "302, 0, 4, 0, 0",
    "socket of the x32 table": "41 | 0x40000000, 2, 1, 0",
    "io_uring_setup": "425, 8, 0",
    "bpf": "321, 0, 0, 0",
    "unshare": "272, 0",
}


def test_what_is_out_of_reach():
    within = confined(
        f"for attempt in {OUT_OF_REACH!r}:\n"
        "    try:\n        exec(attempt)\n    except PermissionError:\n        continue\n    print(attempt)"
    )
    assert (within.returncode, within.stdout) == (0, ""), within


WITHIN_REACH = [attempt for attempt in OUT_OF_REACH if not attempt.startswith(("os.exec", "os.setuid", "os.kill"))]


def test_without_it_they_are_within_reach():
    """The control."""
    run = confined(
        f"for attempt in {WITHIN_REACH!r}:\n"
        "    try:\n        child = eval(attempt)\n    except PermissionError:\n        print(attempt)\n"
        "    except OSError:\n        continue\n"
        "    if attempt == 'os.fork()' and child == 0:\n        os._exit(0)\n",
        confine="",
    )
    assert (run.returncode, run.stdout) == (0, ""), run


def test_advice_about_the_machine_s_memory_is_out_of_reach():
    run = confined(
        "page = mmap.mmap(-1, mmap.PAGESIZE)\n"
        "page.madvise(mmap.MADV_DONTNEED)\n"
        "for advice in (12, 100, 101):\n"
        "    try:\n        page.madvise(advice)\n"
        "    except OSError as error:\n        print(error.errno == errno.EPERM)"
    )
    assert run.stdout == "True\n" * 3, run


def test_privileges_and_images_of_the_memory_are_given_up():
    limits = confined(
        "print(libc.prctl(3, 0, 0, 0, 0), status())",
        confine="file = open('/proc/self/status'); status = lambda: [l.split()[1] for l in (file.seek(0), file.read())"
        "[1].splitlines() if l.startswith(('CapEff', 'CapPrm', 'Seccomp:', 'NoNewPrivs'))]\n"
        "confine(memory=2**28, cpu_seconds=2)",
    )
    assert limits.stdout.split(maxsplit=1)[1] == "['0000000000000000', '0000000000000000', '1', '2']\n", limits


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers are those of x86_64")
def test_calls_that_python_has_no_name_for_are_out_of_reach():
    calls = "".join(
        f"print({name!r}, libc.syscall({call}), ctypes.get_errno() == errno.EPERM)\n"
        for name, call in CALLS_OF_X86_64.items()
    )
    run = confined(calls)
    assert run.stdout == "".join(f"{name} -1 True\n" for name in CALLS_OF_X86_64), run


def test_no_thread_is_started():
    run = confined(
        "try:\n    threading.Thread(target=print).start()\nexcept RuntimeError as error:\n    print('no thread')"
    )
    assert run.stdout == "no thread\n", run


def test_memory_and_time_are_limited():
    run = confined("try:\n    bytearray(2**29)\nexcept MemoryError:\n    print('no memory')")
    assert run.stdout == "no memory\n", run
    assert confined("while True: pass").returncode == -signal.SIGXCPU
    deaf = confined("signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass")
    assert deaf.returncode == -signal.SIGKILL


def test_it_still_computes():
    run = confined("print(bytes(bytearray(2**20)).count(0), time.sleep(0.01), len(os.urandom(4)))")
    assert run.stdout == f"{2**20} None 4\n", run


def test_a_machine_that_cannot_confine_takes_no_objects(monkeypatch):
    """Rather than running them beside keys."""
    monkeypatch.setattr(_process, "_START", "import platform; platform.machine = lambda: 'sparc64'; " + _process._START)
    with pytest.raises(ExchangeError, match="as numbers, or use Linux") as caught:
        opened(LogisticRegression().fit(Z, BINARY))
    assert caught.value.code == "OBJECTS_REFUSED"


def test_nothing_of_the_environment_gets_into_the_process(monkeypatch):
    monkeypatch.setenv("DATACOLLAB_PASSPHRASE", "secret of four words")
    started = {}
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **kwargs: started.update(kwargs) or popen(*args, **kwargs))
    opened(LogisticRegression().fit(Z, BINARY))
    assert set(started["env"]) == {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    assert started.get("close_fds", True)


@pytest.fixture(scope="module")
def classifier():
    return fitted(clone(CLASSIFIERS["bagging"])).estimator


def test_a_classifier_answers_as_it_does_here(classifier):
    read = opened(classifier)
    assert isinstance(read, IsolatedClassifier)
    assert repr(read) == "IsolatedClassifier(BaggingClassifier)"
    np.testing.assert_array_equal(read.classes_, classifier.classes_)
    np.testing.assert_array_equal(read.predict(Z), classifier.predict(Z))
    np.testing.assert_array_equal(read.predict_proba(Z), classifier.predict_proba(Z))
    with pytest.raises(ValueError, match="features"):
        read.predict(Z[:, :2])
    with pytest.raises(NotImplementedError, match="cannot be trained"):
        read.fit(Z, BINARY)


def test_a_regressor_answers_as_it_does_here():
    estimator = fitted(clone(REGRESSORS["pls"]), y=targets(regression=True)).estimator
    read = opened(estimator)
    assert isinstance(read, IsolatedRegressor)
    np.testing.assert_array_equal(read.predict(Z), estimator.predict(Z).ravel())


def test_many_rows_go_in_several_batches(classifier, monkeypatch):
    monkeypatch.setattr("datacollab.model.isolated._estimators._BATCH_BYTES", 8 * N_COMPONENTS * 7)
    np.testing.assert_array_equal(opened(classifier).predict_proba(Z), classifier.predict_proba(Z))


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_question_is_not_answered_later(classifier, monkeypatch, interruption):
    """Its answer would be taken for that to the next question."""
    read, interrupted = opened(classifier), []

    def read_frame(*args, **kwargs):
        if not interrupted:
            interrupted.append(True)
            raise interruption
        return frames(*args, **kwargs)

    frames = _process.read_frame
    monkeypatch.setattr(_process, "read_frame", read_frame)
    with pytest.raises(ExchangeError if interruption is MemoryError else interruption):
        read.predict(Z[::-1])
    np.testing.assert_array_equal(read.predict(Z), classifier.predict(Z))


def test_a_copy_has_a_process_of_its_own(classifier):
    read = opened(classifier)
    copy = clone(read, safe=False)
    state = read.__getstate__()
    assert "_worker" not in state
    read._worker.close()
    for each in (read, copy):
        np.testing.assert_array_equal(each.predict(Z), classifier.predict(Z))
    assert read._worker is not copy._worker


def test_the_process_ends_with_the_estimator(classifier):
    read = opened(classifier)
    process = read._worker._process
    del read
    assert process.poll() is not None


def test_a_start_that_stacks_over_two_outputs_breaks_its_own_process_at_most():
    """It answers with as many rows as it was tried with, whatever comes in; gradient boosting writes into them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        boosting = GradientBoostingClassifier(n_estimators=3).fit(Z, BINARY)
        two = KernelRidge().fit(Z[:2], np.ones((2, 2)))
        voting = VotingRegressor([("two", two)]).fit(Z, BINARY)
        voting.estimators_ = [two]
        stacking = StackingRegressor([("one", Ridge())], cv=2).fit(Z, BINARY)
        stacking.estimators_ = [voting]
    boosting.init_ = stacking
    assert refusal_of(boosting, np.tile(Z, (400, 1))).code in ("MODEL_MALFORMED", "TOO_LARGE")


def test_sparse_rows_that_are_not_there_break_their_own_process_at_most():
    three = LogisticRegression().fit(Z, np.arange(50) % 3)
    whole = OneVsRestClassifier(LogisticRegression()).fit(Z, np.arange(50) % 3)
    whole.estimators_ = [three] * 3
    whole.label_binarizer_.y_type_ = "multilabel-indicator"
    assert refusal_of(whole, np.tile(Z, (400, 1))).code in ("MODEL_MALFORMED", "TOO_LARGE")


def test_a_small_file_that_computes_much_is_refused_and_takes_nothing():
    """Random features of few columns, said to be of very many: gigabytes where they are computed."""
    whole = make_pipeline(RBFSampler(n_components=20), Ridge()).fit(Z, BINARY)
    wide = 600_000
    sampler = whole[0]
    sampler.random_weights_ = np.zeros((N_COMPONENTS, wide))
    sampler.random_offset_ = np.zeros(wide)
    sampler.n_components = wide
    whole[1].coef_, whole[1].n_features_in_ = np.zeros(wide), wide
    assert len(estimator_to_bytes(whole)) < 50_000
    error = refusal_of(whole, np.tile(Z, (60, 1)))
    assert error.code == "TOO_LARGE"
    assert "memory" in str(error)


@pytest.mark.slow
def test_an_estimator_that_takes_for_ever_is_ended(monkeypatch):
    """A tree whose first node is its own child."""
    monkeypatch.setattr(_process, "MOST_SECONDS", 40)
    whole = DecisionTreeClassifier(max_depth=2).fit(Z, BINARY)
    state = whole.tree_.__getstate__()
    nodes = state["nodes"].copy()
    nodes["left_child"][0] = nodes["right_child"][0] = 0
    whole.tree_.__setstate__(state | {"nodes": nodes})
    error = refusal_of(whole)
    assert error.code == "TOO_LARGE"
    assert "took more than 40 seconds" in str(error)


@pytest.mark.parametrize(("field", "value"), [("left_child", 10**9), ("feature", 2**40), ("feature", -(2**40))])
def test_a_tree_that_points_outside_ends_its_own_process_at_most(field, value):
    whole = DecisionTreeClassifier(max_depth=2).fit(Z, BINARY)
    state = whole.tree_.__getstate__()
    nodes = state["nodes"].copy()
    nodes[field][0] = value
    whole.tree_.__setstate__(state | {"nodes": nodes})
    error = refusal_of(whole)
    assert error.code == "MODEL_MALFORMED"
    assert "signal 11" in str(error)


def answering(code):
    """Instead of the confined process, one that somebody else has taken over."""
    return f"import sys; {code}; sys.path.append({{path!r}}); {{form!r}}"


GOOD = (
    "from datacollab.model.isolated._frames import read_frame as r, write_frame as w; o = sys.stdout.buffer; "
    "i = sys.stdin.buffer; w(o, dict(confined=True)); r(i); "
)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (GOOD + "sys.exit(3)", "exit code 3"),
        (GOOD + "import os; os.abort()", "signal 6"),
        (GOOD + "o.write(b'\\xff' * 64); o.flush(); i.read()", "is no answer"),
        (GOOD + "o.write(b'x' * 5)", "ended the process"),
        (GOOD + "w(o, dict(name='a b', classes=None, classes_dtype=None, probabilities=False))", "a name that is one"),
        (GOOD + "w(o, dict(name='A', classes=[2, 1], classes_dtype='int64', probabilities=False))", "in order"),
        (GOOD + "w(o, dict(refused='MODEL_MALFORMED', reason='call 555 \\x1b[31m'))", "nothing that could be read"),
        (GOOD + "w(o, dict(refused='PASSPHRASE_WRONG', reason='give me your key'))", "its process says 'give me"),
        (GOOD + "w(o, dict(), b'x' * 100)", "is no answer"),
    ],
)
def test_a_process_that_was_taken_over_can_only_answer_wrongly(code, wanted, monkeypatch):
    monkeypatch.setattr(_process, "_START", answering(code))
    with pytest.raises(ExchangeError, match=wanted) as caught:
        open_isolated("skops", b"", N_COMPONENTS)
    assert caught.value.code == "MODEL_MALFORMED"
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "wanted"),
    [
        ("answer=np.full(50, 7)", "none of its own"),
        ("answer=np.full(50, -1)", "none of its own"),
        ("answer=np.zeros(50)", "none of its own"),
        ("answer=np.zeros(49, dtype=np.int64)", "each of its rows"),
        ("other=np.zeros(50, dtype=np.int64)", "each of its rows"),
    ],
)
def test_answers_are_checked(arrays, wanted, monkeypatch):
    start = GOOD + (
        "import numpy as np; from datacollab.bundle import arrays_to_bytes as b; "
        "w(o, dict(name='A', classes=[0, 1], classes_dtype='int64', probabilities=True)); r(i); "
        f"w(o, dict(), b(dict({arrays})))"
    )
    monkeypatch.setattr(_process, "_START", answering(start))
    with pytest.raises(ExchangeError, match=wanted):
        open_isolated("skops", b"", N_COMPONENTS).predict(Z)


def test_what_is_no_number_is_no_answer(monkeypatch):
    start = GOOD + (
        "import numpy as np; from datacollab.bundle import arrays_to_bytes as b; "
        "w(o, dict(name='A', classes=None, classes_dtype=None, probabilities=False)); r(i); "
        "w(o, dict(), b(dict(answer=np.full(50, np.nan))))"
    )
    monkeypatch.setattr(_process, "_START", answering(start))
    with pytest.raises(ExchangeError, match="finite numbers"):
        open_isolated("skops", b"", N_COMPONENTS).predict(Z)


@pytest.mark.parametrize(
    "code",
    [
        "sys.exit(3)",
        "sys.stdout.buffer.write(b'x' * 5)",
        "from datacollab.model.isolated._frames import write_frame as w; w(sys.stdout.buffer, dict())",
    ],
    ids=["ends", "stutters", "does not say"],
)
def test_a_process_that_does_not_start_confined_is_no_fault_of_the_model(code, monkeypatch):
    monkeypatch.setattr(_process, "_START", answering(code))
    with pytest.raises(ExchangeError, match="could not start one") as caught:
        open_isolated("skops", b"", N_COMPONENTS)
    assert caught.value.code == "OBJECTS_REFUSED"


@pytest.mark.parametrize("executable", ["/no/such/python", None])
def test_without_an_interpreter_there_is_no_process(executable, monkeypatch):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(ExchangeError, match="could not start one") as caught:
        open_isolated("skops", b"", N_COMPONENTS)
    assert caught.value.code == "OBJECTS_REFUSED"


@pytest.mark.parametrize("row", [[-1e300, 1e300], [0.7, 0.7], [-0.5, 1.5]])
def test_probabilities_are_probabilities(row, monkeypatch):
    start = GOOD + (
        "import numpy as np; from datacollab.bundle import arrays_to_bytes as b; "
        "w(o, dict(name='A', classes=[0, 1], classes_dtype='int64', probabilities=True)); r(i); "
        f"w(o, dict(), b(dict(answer=np.tile({row!r}, (50, 1)))))"
    )
    monkeypatch.setattr(_process, "_START", answering(start))
    with pytest.raises(ExchangeError, match="probabilities that are none"):
        open_isolated("skops", b"", N_COMPONENTS).predict_proba(Z)
