"""The charts of the page, as data: each function turns records into a chart that is rendered elsewhere.

All are drawn about 400 pixels wide, so that their words can still be read where a phone shrinks them, and all tell
their series apart by shape as well as by colour, so that a print in grey can be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite, log10
from typing import Any

import altair as alt
import numpy as np

from rarevote.diagnose import Calibration, Diagnosis, Profile, TradeOff
from rarevote.report.palette import light
from rarevote.report.wording import count, percent

_WIDTH = 330
_FONT = "Helvetica, Arial, sans-serif"
_MOST_CLASSES = 12
# Beyond these the map is a cloud: intervals would hide the points, and more points would hide each other.
_MOST_INTERVALS = 80
_MOST_WORKERS = 2_000

PROFILE_WORDS: dict[Profile, str] = {
    Profile.BOTH: "both classes",
    Profile.MAJORITY_ONLY: "majority class only",
    Profile.MINORITY_ONLY: "rare class only",
    Profile.NEITHER: "neither",
}
_PROFILE_LOOKS: dict[Profile, tuple[str, str]] = {
    Profile.BOTH: ("good", "circle"),
    Profile.MAJORITY_ONLY: ("common", "triangle-down"),
    Profile.MINORITY_ONLY: ("rare", "triangle-up"),
    Profile.NEITHER: ("odd", "cross"),
}


@dataclass(frozen=True)
class Chart:
    """A chart with its words.

    Attributes:
        name: of its files.
        title: what it shows.
        caption: how to read it.
        spec: the chart itself, without title and ground.
    """

    name: str
    title: str
    caption: str
    spec: alt.TopLevelMixin


def class_counts(found: Diagnosis) -> Chart:
    """Items per class: decided, by majority vote, expected, and true where that is known."""
    classes, rows = found.classes, []
    others = [int(k) for k in np.argsort(-classes.n_expected, kind="stable") if k != found.rare]
    shown = [found.rare, *others[: _MOST_CLASSES - 1]]
    for k in shown:
        entries = [
            ("majority vote", classes.n_majority[k], np.nan, np.nan),
            ("this result", classes.n_labelled[k], np.nan, np.nan),
            ("expected", classes.n_expected[k], classes.expected_low[k], classes.expected_high[k]),
        ]
        rows += [
            {"class": str(classes.names[k]), "source": source, "items": float(items), "low": _or_none(low),
             "high": _or_none(high), "words": count(items)}
            for source, items, low, high in entries
        ]  # fmt: skip
    sources = ["majority vote", "this result", "expected"]
    largest = max(row["items"] for row in rows)
    ticks = [0, *(10**power for power in range(ceil(log10(max(largest, 1))) + 1))]
    x = alt.X(
        "items:Q",
        title="items (each step is ten times as many)",
        scale=alt.Scale(type="symlog", constant=1, domain=[0, max(largest * 2.2, 10)], nice=False),
        axis=alt.Axis(values=ticks, format="~s"),
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=x,
        y=alt.Y("class:N", sort=[str(classes.names[k]) for k in shown], title=None, axis=_row_axis()),
        yOffset=alt.YOffset("source:N", sort=sources),
        description=alt.Description("words:N"),
    )
    colour = _scaled("source", sources, [light("vote"), light("rare"), light("good")], alt.Color)
    shape = _scaled("source", sources, ["square", "circle", "diamond"], alt.Shape)
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q", color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(color=colour, shape=shape),
        base.mark_text(align="left", dx=9, fontSize=12).encode(text="words:N", color=alt.value(light("ink"))),
    ).properties(width=_WIDTH - 40, height=alt.Step(17))
    cut = f" Of {len(classes.names):,} classes, {_MOST_CLASSES} are shown." if len(shown) < len(classes.names) else ""
    interval = " Its line is the 95 % interval." if np.isfinite(classes.expected_low).any() else ""
    return Chart(
        "class-counts",
        "Items per class",
        "Expected: how many items truly have the class, by the probabilities." + interval + cut,
        _dressed(layers),
    )


def rescued(found: Diagnosis) -> Chart | None:
    """Items with the rare label by the share of votes that said so; those left of the middle a majority vote loses."""
    items = found.items
    mine = np.flatnonzero(items.label == found.rare)
    if not mine.size:
        return None
    share = items.votes[mine, found.rare] / np.maximum(items.votes[mine].sum(axis=1), 1)
    lost = items.majority[mine] != found.rare
    name = str(found.classes.names[found.rare])
    kinds = [f"majority vote loses them ({lost.sum():,})", f"majority vote agrees ({(~lost).sum():,})"]
    step = np.minimum((share * 10 + 1e-9).astype(np.int64), 9)
    rows = [
        {"from": start / 10, "to": (start + 1) / 10, "kind": kind, "items": number, "words": f"{kind}: {number:,}"}
        for kind, of_kind in zip(kinds, (lost, ~lost), strict=True)
        for start, number in enumerate(np.bincount(step[of_kind], minlength=10).tolist())
        if number
    ]
    chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(binSpacing=2)
        .encode(
            x=alt.X(
                "from:Q",
                bin=alt.BinParams(binned=True),
                title=f"share of an item's votes that said {_short(name)}",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", tickCount=5),
            ),
            x2="to:Q",
            y=alt.Y("items:Q", title=f"items labelled {_short(name)}", stack="zero", axis=alt.Axis(tickMinStep=1)),
            color=_scaled("kind", kinds, [light("rare"), light("vote")], alt.Color),
            description=alt.Description("words:N"),
        )
        .properties(width=_WIDTH, height=190)
    )
    return Chart(
        "rescued",
        f"Items labelled {name}, by their votes",
        "Every bar counts items that got the label although, or because, that share of their votes said so.",
        _dressed(chart),
    )


def ability_map(found: Diagnosis) -> Chart:
    """Annotators by what they recognise: the majority class across, the rare class upwards."""
    workers, rare, common = found.workers, found.rare, found.common
    # The busiest, who are known best and matter most.
    chosen = np.argsort(-workers.n_votes, kind="stable")[:_MOST_WORKERS]
    rare_name, common_name = str(found.classes.names[rare]), str(found.classes.names[common])
    rows = [
        {
            "x": float(workers.accuracy[r, common]), "x_low": float(workers.low[r, common]),
            "x_high": float(workers.high[r, common]), "y": float(workers.accuracy[r, rare]),
            "y_low": float(workers.low[r, rare]), "y_high": float(workers.high[r, rare]),
            "profile": PROFILE_WORDS[Profile(int(workers.profile[r]))],
            "words": f"{workers.names[r]}: recognises {common_name} {percent(workers.accuracy[r, common])}, "
            f"{rare_name} {percent(workers.accuracy[r, rare])}, {workers.n_votes[r]:,} votes",
        }
        for r in chosen.tolist()
    ]  # fmt: skip
    present = [profile for profile in PROFILE_WORDS if workers.count(profile)]
    words = [PROFILE_WORDS[profile] for profile in present]
    colour = _scaled("profile", words, [light(_PROFILE_LOOKS[profile][0]) for profile in present], alt.Color)
    shape = _scaled("profile", words, [_PROFILE_LOOKS[profile][1] for profile in present], alt.Shape)
    scale, axis = alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x:Q", title=f"recognises {_short(common_name)}", scale=scale, axis=axis),
        y=alt.Y("y:Q", title=f"recognises {_short(rare_name)}", scale=scale, axis=axis),
        description=alt.Description("words:N"),
    )
    middle = alt.Chart(alt.InlineData(values=[{"half": 0.5}])).mark_rule(strokeDash=[4, 3], color=light("soft"))
    layers: list[Any] = [middle.encode(x=alt.X("half:Q")), middle.encode(y=alt.Y("half:Q"))]
    with_intervals = len(rows) <= _MOST_INTERVALS
    if with_intervals:
        faint = base.mark_rule(strokeWidth=1, opacity=0.4)
        layers += [
            faint.encode(x="x_low:Q", x2="x_high:Q", color=colour),
            faint.encode(y="y_low:Q", y2="y_high:Q", color=colour),
        ]
    layers.append(base.mark_point(filled=True, size=60, opacity=0.95).encode(color=colour, shape=shape))
    notes = ["Each mark is an annotator, placed by the share of each class that they recognise on an average item."]
    notes.append("Thin lines are 95 % intervals." if with_intervals else "")
    if len(rows) < len(workers.names):
        notes.append(f"The {len(rows):,} busiest of {len(workers.names):,} annotators are drawn.")
    return Chart(
        "ability-map",
        "Ability map of the annotators",
        " ".join(note for note in notes if note),
        _dressed(alt.layer(*layers).properties(width=_WIDTH, height=_WIDTH)),
    )


def trade_off_chart(found: Diagnosis, expected: TradeOff, true: TradeOff | None) -> Chart | None:
    """Recall against precision of one class, expected and, where answers are known, as it turned out."""
    name = str(found.classes.names[expected.class_code])
    curves = [("expected", expected)] + ([("by known answers", true)] if true is not None else [])
    curves = [(words, curve) for words, curve in curves if np.isfinite(curve.recall).all()]
    if not curves:
        return None
    lines, points = [], []
    for words, curve in curves:
        lines += [
            {"recall": float(recall), "precision": float(precision), "curve": words}
            for recall, precision in zip(curve.recall, curve.precision, strict=True)
        ]
        points += [
            {"recall": point.recall, "precision": point.precision, "who": who, "curve": words,
             "words": f"{who}, {words}: {point.n_flagged:,} items flagged, recall {percent(point.recall)}, "
             f"precision {percent(point.precision)}"}
            for who, point in (("this result", curve.chosen), ("majority vote", curve.majority))
            if isfinite(point.recall) and isfinite(point.precision)
        ]  # fmt: skip
    scale, axis = alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5)
    x = alt.X("recall:Q", title="recall: share of the class that is found", scale=scale, axis=axis)
    y = alt.Y("precision:Q", title="precision: share that is right", scale=scale, axis=axis)
    names = [words for words, _ in curves]
    dash = _scaled("curve", names, [[1, 0], [5, 3]][: len(names)], alt.StrokeDash, always=len(names) > 1)
    line = (
        alt.Chart(alt.InlineData(values=lines))
        .mark_line(color=light("common"), strokeWidth=2, interpolate="linear")
        .encode(x=x, y=y, strokeDash=dash, order=alt.Order("recall:Q"))
    )
    who = ["this result", "majority vote"]
    marks = (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(filled=True, opacity=1, size=95)
        .encode(
            x=x,
            y=y,
            color=_scaled("who", who, [light("rare"), light("vote")], alt.Color),
            shape=_scaled("who", who, ["circle", "square"], alt.Shape),
            description=alt.Description("words:N"),
        )
    )
    return Chart(
        f"trade-off-{expected.class_code + 1}",
        f"Finding {name}",
        f"From left to right more items are labelled {name}, the most probable ones first.",
        _dressed(alt.layer(line, marks).properties(width=_WIDTH, height=220)),
    )


def calibration_chart(found: Diagnosis, by_probability: Calibration, by_posterior: Calibration | None) -> Chart:
    """Probability against what was observed; on the diagonal the probabilities can be taken at their word."""
    kinds = [("probability on this page", by_probability)]
    if by_posterior is not None:
        kinds.append(("posterior of the method", by_posterior))
    rows = [
        {"predicted": float(groups.predicted[g]), "observed": float(groups.observed[g]), "low": float(groups.low[g]),
         "high": float(groups.high[g]), "kind": kind,
         "words": f"{kind} about {percent(groups.predicted[g])}: {percent(groups.observed[g])} of "
         f"{groups.count[g]:,} items"}
        for kind, groups in kinds
        for g in range(len(groups.count))
    ]  # fmt: skip
    words = [kind for kind, _ in kinds]
    name = str(found.classes.names[found.rare])
    scale, axis = alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5)
    x = alt.X("predicted:Q", title=f"probability of {_short(name)}", scale=scale, axis=axis)
    y = alt.Y("observed:Q", title=f"share that is {_short(name)}", scale=scale, axis=axis)
    colour = _scaled("kind", words, [light("rare"), light("vote")], alt.Color)
    diagonal = alt.Chart(
        alt.InlineData(values=[{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}])
    ).mark_line(color=light("soft"), strokeDash=[4, 3], strokeWidth=1)
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, description=alt.Description("words:N"))
    layers = alt.layer(
        diagonal.encode(x=x, y=y),
        base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            y=y, color=colour, shape=_scaled("kind", words, ["circle", "square"], alt.Shape)
        ),
    )
    return Chart(
        "calibration",
        "Can the probabilities be taken at their word?",
        "Items in groups of like probability. On the dashed line as many had the class as was said. Lines are 95 % "
        "intervals.",
        _dressed(layers.properties(width=_WIDTH, height=240)),
    )


def convergence(found: Diagnosis) -> Chart | None:
    """The objective after each iteration."""
    rows = [
        {"iteration": number, "objective": value, "words": f"iteration {number}: {value:,.3f}"}
        for number, value in enumerate(found.history, 1)
        if isfinite(value)
    ]
    if len(rows) < 2:
        return None
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("iteration:Q", title="iteration", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("objective:Q", title="objective (higher fits better)", scale=alt.Scale(zero=False)),
        description=alt.Description("words:N"),
    )
    layers = [base.mark_line(color=light("common"), strokeWidth=2)]
    if len(rows) <= 60:
        layers.append(base.mark_point(filled=True, size=30, color=light("common"), opacity=1))
    return Chart(
        "convergence",
        "How the fit got on",
        "The objective after each iteration; a curve that has gone flat has settled.",
        _dressed(alt.layer(*layers).properties(width=_WIDTH, height=170)),
    )


def _or_none(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _short(name: str, limit: int = 24) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"


def _scaled(field: str, domain: list[str], looks: list[Any], channel: Any, *, always: bool = True) -> Any:
    """A channel with one look per series, and a legend above the chart."""
    legend = alt.Legend(title=None, orient="top", direction="horizontal", columns=2, labelLimit=210) if always else None
    return channel(f"{field}:N", scale=alt.Scale(domain=domain, range=looks[: len(domain)]), legend=legend)


def _row_axis() -> alt.Axis:
    return alt.Axis(ticks=False, domain=False, labelLimit=130, labelFontSize=13, labelPadding=8)


def _dressed(chart: Any) -> alt.TopLevelMixin:
    dressed: alt.TopLevelMixin = (
        chart.properties(background="transparent", padding=2)
        .configure(font=_FONT)
        .configure_title(fontSize=15, anchor="start", color=light("ink"), offset=10)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=12.5,
            titleFontWeight="normal",
            labelColor=light("soft"),
            titleColor=light("ink"),
            gridColor=light("grid"),
            domainColor=light("rule"),
            tickColor=light("rule"),
        )
        .configure_legend(labelFontSize=12.5, labelColor=light("ink"), symbolSize=80, symbolStrokeWidth=0)
        .configure_view(stroke=None)
    )
    return dressed
