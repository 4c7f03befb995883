"""The result of `enc profile` as tables."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from commands.bench_report import (
    describe_texts,
    describe_tokens,
    machine_facts,
    milliseconds,
    unreliable_remark,
)
from commands.tables import duration, facts_table, make_table, print_indented
from recipes.measurements import ProfileResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Broken where a narrow table would break them worse.
TITLES = {
    "projections": "projec-\ntions",
    "scores and mixing": "scores,\nmixing",
    "feed-forward": "feed-\nforward",
    "embeddings": "embed-\ndings",
    "add & norm": "add,\nnorm",
    "rest": "rest",
}


def show_profile(result: ProfileResult, console: "Console") -> None:
    """Each length with the shares of time and of arithmetic, then what follows from it."""
    profile = result.profile
    console.print()
    console.print(_parts_table(result))
    for line in _remarks(result):
        print_indented(console, line)
    console.print()
    devices = {profile.device: profile.device_name}
    console.print(facts_table(machine_facts(result.machine, devices, profile.threads)))
    saved = [] if result.output is None else [("saved in", result.output)]
    console.print(facts_table([("whole run", duration(result.seconds)), *saved]))
    console.print()
    console.print(result.advice, markup=False, style="bold")


def _parts_table(result: ProfileResult) -> "Table":
    parts = list(result.profile.rows[0].shares)
    title = f"{result.model.source}: {result.profile.runtime} on {result.profile.device}, batch size "
    title += str(result.profile.rows[0].shape.batch_size)
    table = make_table("tokens", "ms", "", *(TITLES.get(part, part) for part in parts), title=title, texts=0)
    for row in result.profile.rows:
        tokens = describe_tokens(row.shape)
        time = milliseconds(sum(row.part_ms.values())) + ("" if row.is_reliable else " *")
        table.add_row(tokens, time, "time", *(_percent(row.shares[part]) for part in parts))
        table.add_row("", "", "FLOPs", *(_percent(row.mac_shares[part]) for part in parts), style="dim")
    return table


def _remarks(result: ProfileResult) -> Iterable[str]:
    profile = result.profile
    yield (
        "projections (query, key, value, output) and scores, mixing together are attention. FLOPs: the share "
        "of the multiply-accumulates; norms, softmax and look-ups count none."
    )
    if result.data is not None:
        yield describe_texts(result.data)
        for row in profile.rows:
            if row.shape.sequence_length is None:
                yield (
                    f"On these rows attention takes {row.attention_share:.0%} of the time, "
                    f"the feed-forward blocks {row.feed_forward_share:.0%}."
                )
    yield from unreliable_remark(profile.rows)
    lengths = [row.shape.sequence_length for row in profile.rows if row.shape.sequence_length is not None]
    if not lengths:
        return
    by_macs = ""
    if profile.overtakes_at_macs is not None:
        at = profile.overtakes_at_macs
        by_macs = f"; by arithmetic alone {f'from {at:,.0f} tokens on' if at > 1 else 'at any length'}"
    if profile.overtakes_at is None:
        yield f"Attention does not overtake the feed-forward blocks up to {max(lengths):,} tokens{by_macs}."
    elif profile.overtakes_at <= min(lengths):
        yield f"Attention takes longer than the feed-forward blocks at all lengths measured{by_macs}."
    else:
        yield (
            "Attention takes longer than the feed-forward blocks from about "
            f"{profile.overtakes_at:,.0f} tokens on{by_macs}."
        )


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 or share == 0 else "<1%"
