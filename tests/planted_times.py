"""Times of a tiny model as if they had been measured: what tests of a compression start from."""

from compress.deployed import read_export
from compress.latency_table import LatencyTable, LayerTimes
from compress.paired import Speedup
from encoder.model_folder import read_config
from recipes.compress_result import Candidate
from recipes.pruning_result import SpeedupResult
from recipes.side_by_side import BothLatencies
from tests.results import make_latency, make_shape

BASELINE_MS = 12.0


def layer_times(ms):
    """A layer takes ``ms``, the last one half of it; heads and neurons take half of that each."""
    half = ms / 2
    return LayerTimes(
        rest_ms=0.5,
        base_ms=0.0,
        heads=((0, 0.0), (4, half)),
        neurons=((0, 0.0), (64, half)),
        last_heads_ms=half / 2,
        last_neurons_ms=half / 2,
    )


# Three layers take 5.5 ms in fp32 and 3 ms in int8, two 3.5 and 2 ms, one 1.5 and 1 ms.
TABLE = LatencyTable(
    tokens=10,
    threads=1,
    device_name="a CPU",
    form="fused",
    depth=2,
    times={"fp32": layer_times(2.0), "int8": layer_times(1.0)},
    reliable=True,
)


def measure_by_table(parent, folder, rows, *, threads, observer, slower=1.0):
    """What `measure_in_turns` would find, were the table exact but for the factor ``slower``."""
    ms = TABLE.predict(read_config(folder), read_export(folder).precision) * slower
    shape = make_shape(1, None)
    speedup = Speedup(ratio=BASELINE_MS / ms, low=1.0, high=20.0, launches=4)
    return BothLatencies(
        (make_latency(BASELINE_MS, shape=shape),),
        (make_latency(ms, shape=shape),),
        (SpeedupResult(device="cpu", shape=shape, speedup=speedup, verdict="faster"),),
    )


def plant(monkeypatch):
    """Let a compression measure nothing and find these times."""
    monkeypatch.setattr("compress.latency_probing.find_table", lambda *_, **__: TABLE)
    monkeypatch.setattr("compress.latency_probing.measure_undisturbed", lambda *_, **__: BASELINE_MS)
    monkeypatch.setattr("recipes.compress_attempts.measure_in_turns", measure_by_table)
    monkeypatch.setattr("recipes.row_times._time_process", lambda *_: 1.0)


def make_candidate(name, drop, ms, *, proven=True, **more):
    """A candidate that takes ``ms`` of the original's 12 and loses ``drop`` points of 0.9."""
    values = {
        "name": name,
        "layers": 6,
        "heads": 24,
        "neurons": 96,
        "precision": "int8",
        "kept_layers": tuple(range(6)),
        "score": None if drop is None else 0.9 - drop / 100,
        "drop": None if drop is None else drop / 100,
        "rows": 500,
        "predicted_ms": ms,
        "size_bytes": 1000,
        "proven": proven,
    }
    if proven:
        values |= {"latency_ms": ms, "speedup": BASELINE_MS / ms}
    return Candidate(**values | more)
