"""Parts of runs that only a report shows, and what is in its page."""

import json
import re

from commands.report import write_report
from compress.profile import Profile, ProfileRow
from compress.stopwatch import PARTS
from recipes.class_scores import ClassScores, Confusion, PerClass
from recipes.measurements import ProfileResult
from recipes.result import Epoch, TrainingResult
from tests.results import (
    MACHINE,
    make_bench,
    make_model,
    make_shape,
)


def make_training():
    epochs = tuple(
        Epoch(epoch=number, loss=1 / number, validation={"accuracy": 0.8 + 0.05 * number})
        for number in (1, 2, 3)
    )
    return TrainingResult(
        trainable_parameters=1,
        total_parameters=1,
        frozen="Nothing is frozen.",
        new_parameters=(),
        epochs=epochs,
        best_epoch=2,
        best_metric="accuracy",
        seconds=1.0,
        rows_per_s=1.0,
        peak_memory_bytes=None,
        device_memory_bytes=None,
        precision="fp32",
        device="cpu",
        threads=1,
    )


def make_profile():
    rows = tuple(
        ProfileRow(
            shape=make_shape(1, length),
            part_ms=dict.fromkeys(PARTS, length / 10),
            shares=dict.fromkeys(PARTS, 1 / len(PARTS)),
            mac_shares=dict.fromkeys(PARTS, 1 / len(PARTS)),
        )
        for length in (16, 64)
    )
    profile = Profile(
        rows=rows,
        overtakes_at=None,
        overtakes_at_macs=512.0,
        runtime="torch-fp32",
        device="cpu",
        device_name=MACHINE.cpu,
        threads=1,
    )
    common = make_bench().model_dump(include=set(ProfileResult.model_fields))
    return ProfileResult(
        **common | {"command": "profile", "data": None},
        model=make_model("a", "a"),
        profile=profile,
        advice="Prune neurons.",
    )


def make_classes(labels=("neg", "pos")):
    classes = tuple(
        ClassScores(label=label, rows=250, predicted=250, right=240, precision=0.96, recall=0.96, f1=0.96)
        for label in labels
    )
    confusions = (Confusion(label=labels[0], predicted=labels[1], rows=10),)
    return {"test": PerClass(classes=classes, confusions=confusions)}


def figures_of(page):
    return json.loads(
        re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)[1]
    )


def write_all(folder, **runs):
    for name, made in runs.items():
        (folder / name).mkdir()
        (folder / name / "run.json").write_text(made.to_json())
    return write_report(folder).read_text(encoding="utf-8")


def section(page, name):
    return re.search(rf'<section class="[^"]*" id="{name}">.*?</section>', page, re.S)[0]
