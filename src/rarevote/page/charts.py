"""The charts of the page, as data: each function turns records into a chart that is rendered elsewhere.

All are drawn about 400 pixels wide, so that a phone can shrink them and their text stays legible. Series differ by
shape as well as by colour, so that a greyscale print is readable. In the page the legend is HTML, which wraps; an
exported chart has its own.
"""

from __future__ import annotations

from math import ceil, isfinite, log10
from typing import Any

import altair as alt
import numpy as np

from rarevote.charts.svg import (
    Chart,
    Key,
    ability_scale,
    colours,
    described_by_words,
    drawn_from,
    dressed,
    light,
    row_axis,
    scaled,
    shapes,
    share_axis,
    short,
)
from rarevote.crowd.numerics import finite_or_none
from rarevote.crowd.words import count, counted, percent, short_names
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.diagnose.trade_off import TradeOff
from rarevote.diagnose.truth import Calibration
from rarevote.diagnose.workers import PROFILE_WORDS, Profile, chance_words, logit

_MAX_CLASSES = 12
# With more annotators the map is a cloud: intervals would hide the points, and points would hide each other.
_MAX_INTERVALS = 80
_MAX_WORKERS = 2_000
_TENFOLD_FROM = 8
# Up to this many names of grades are horizontal below their bars.
_MAX_UPRIGHT = 6

_PROFILE_LOOKS = {
    Profile.BOTH: ("good", "circle"),
    Profile.MAJORITY_ONLY: ("common", "triangle-down"),
    Profile.MINORITY_ONLY: ("rare", "triangle-up"),
    Profile.NEITHER: ("odd", "cross"),
}
_RESULT, _VOTE = Key("this result", "rare", "circle"), Key("majority vote", "vote", "square")
_EXPECTED, _TRUE = Key("expected", "good", "diamond"), Key("truth", "common", "triangle-up")


def class_counts(found: Diagnosis) -> Chart:
    """Items per class: decided, by majority vote, expected, and true if the truth of all items is known."""
    classes = found.classes
    shown = found.classes_by_weight[:_MAX_CLASSES]
    keys = [_VOTE, _RESULT, _EXPECTED]
    columns: list[Any] = [classes.n_majority, classes.n_labelled, classes.n_expected]
    if found.truth is not None and found.truth.n_checked == found.n_items:
        # The counts are comparable only if the truth of all items is known.
        keys.append(_TRUE)
        columns.append({k: found.truth.n_true_by_name[classes.names[k]] for k in shown})
    rows = [
        {
            "class": str(classes.names[k]), "source": key.description,
            "items": float(column[k]), "words": count(column[k]),
            "low": finite_or_none(classes.expected_low[k]) if key is _EXPECTED else None,
            "high": finite_or_none(classes.expected_high[k]) if key is _EXPECTED else None,
            "end": float(max(column[k], classes.expected_high[k] if key is _EXPECTED else 0)),
        }
        for k in shown
        for key, column in zip(keys, columns, strict=True)
        if isfinite(column[k])  # not every class has an expectation
    ]  # fmt: skip
    counts = [float(column[k]) for column in columns for k in shown if isfinite(column[k])]
    base = drawn_from(
        rows,
        y=alt.Y("class:N", sort=[str(classes.names[k]) for k in shown], title=None, axis=row_axis()),
        yOffset=alt.YOffset("source:N", sort=[key.description for key in keys]),
    )
    colour, shape = colours("source", keys), shapes("source", keys)
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=_count_axis("low", counts), x2="high:Q", color=colour),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=_count_axis("items", counts), color=colour, shape=shape
        ),
        base.mark_text(align="left", dx=9, fontSize=12).encode(
            x=_count_axis("end", counts), text="words:N", color=alt.value(light("ink"))
        ),
    )
    notes = ["Expected: how many items have the class in truth, with the 90% interval as a line."]
    if len(shown) < len(classes.names):
        notes.append(f"{_MAX_CLASSES} of {len(classes.names):,} classes are shown.")
    return Chart("class-counts", "Items per class", " ".join(notes), tuple(keys), dressed(layers, alt.Step(17)))


def grade_counts(found: Diagnosis) -> Chart:
    """The distribution of grades, from lowest to highest: items by label, with the votes and the probabilities."""
    classes, order = found.classes, found.in_order or []
    n_votes = max(int(classes.n_votes.sum()), 1)
    of_votes = Key("share of the votes", "vote", "square")
    series = [
        (_RESULT, classes.n_labelled / found.n_items),
        (of_votes, classes.n_votes / n_votes),
        (_EXPECTED, classes.n_expected / found.n_items),
    ]
    if found.truth is not None and found.truth.n_checked == found.n_items:
        true = found.truth.n_true_by_name
        series.append((_TRUE, np.array([true[name] for name in classes.names.tolist()]) / found.n_items))
    names = short_names([str(classes.names[k]) for k in order])
    rows = [
        {"grade": name, "source": key.description, "share": float(shares[k]),
         "words": f"{classes.names[k]}, {key.description}: {percent(shares[k])}"}
        for name, k in zip(names, order, strict=True)
        for key, shares in series
        if isfinite(shares[k])
    ]  # fmt: skip
    keys = tuple(key for key, _ in series)
    x = alt.X("grade:N", sort=names, title=None, axis=alt.Axis(labelAngle=0 if len(names) <= _MAX_UPRIGHT else -45))
    y = alt.Y("share:Q", title="share of the items", axis=alt.Axis(format="%"))
    base = described_by_words(rows, x=x, y=y)
    labelled = base.transform_filter(alt.datum.source == _RESULT.description)
    others = base.transform_filter(alt.datum.source != _RESULT.description)
    layers = alt.layer(
        labelled.mark_bar(opacity=0.55).encode(color=colours("source", keys)),
        others.mark_point(filled=True, size=75, opacity=1).encode(
            color=colours("source", keys), shape=shapes("source", keys)
        ),
    )
    outside = len(order) - len(found.grades.codes(classes.names)) if found.grades is not None else 0
    notes = ["From the lowest grade to the highest; bars are the labels."]
    if outside:
        notes.append(f"Last: {counted(outside, 'class', 'classes')} outside the scale.")
    return Chart("class-counts", "How the grades are distributed", " ".join(notes), keys, dressed(layers, 220))


def _count_axis(field: str, counts: list[float]) -> alt.X:
    """Counts along an axis: logarithmic if the largest class would make the others too small."""
    largest, smallest = max(counts), min(counts)
    if largest <= _TENFOLD_FROM * smallest:
        # The space on the right is for the numbers beside the marks.
        return alt.X(f"{field}:Q", title="items", scale=alt.Scale(domain=[0, largest * 1.2], nice=False))
    ticks = [0, *(10**power for power in range(ceil(log10(max(largest, 10))) + 1))]
    return alt.X(
        f"{field}:Q",
        title="items (logarithmic scale)",
        scale=alt.Scale(type="symlog", constant=1, domain=[0, max(largest * 3.5, 10)], nice=False),
        axis=alt.Axis(values=ticks, labelExpr="datum.value >= 1000 ? datum.value / 1000 + 'k' : datum.value"),
    )


def rescued(found: Diagnosis) -> Chart | None:
    """Items with the rare label by the share of votes for it; a majority vote misses those left of the middle."""
    found = found.head
    items = found.items
    mine = np.flatnonzero(items.label == found.rare)
    if not mine.size:
        return None
    share = items.votes[mine, found.rare] / np.maximum(items.votes[mine].sum(axis=1), 1)
    lost = items.majority[mine] != found.rare
    name = found.rare_name
    keys = (
        Key(f"majority vote differs ({lost.sum():,})", "rare", "square"),
        Key(f"majority vote agrees ({(~lost).sum():,})", "vote", "square"),
    )
    # A share of exactly 3/10 belongs to the bin that begins there, whatever the rounding.
    step = np.minimum((share * 10 + 1e-9).astype(np.int64), 9)
    rows = [
        {"from": start / 10, "to": (start + 1) / 10, "kind": key.description, "items": number,
         "words": f"{start * 10} to {start * 10 + 10}% of the votes: {number:,} items"}
        for key, of_kind in zip(keys, (lost, ~lost), strict=True)
        for start, number in enumerate(np.bincount(step[of_kind], minlength=10).tolist())
        if number
    ]  # fmt: skip
    across = f"share of an item's votes for {short(name)}"
    chart = described_by_words(
        rows,
        x=share_axis(alt.X, "from", across, bin=alt.BinParams(binned=True)),
        x2="to:Q",
        y=alt.Y("items:Q", title="items", stack="zero", axis=alt.Axis(tickMinStep=1)),
        color=colours("kind", keys),
    )
    return Chart(
        "rescued",
        f"Items flagged as {name}, by their votes",
        f"Items flagged as {name} by the share of their votes for it.",
        keys,
        dressed(chart.mark_bar(binSpacing=2), 190),
    )


def ability_map(found: Diagnosis) -> Chart:
    """Annotators by what they recognise: the majority class across, the rare class upwards.

    Both axes are in logits, the scale of the abilities, on which 90 and 99 percent are clearly separate; they are
    marked in percent, which is easier to read.
    """
    found = found.head
    workers, rare, common = found.workers, found.rare, found.common
    # The annotators with the most votes, who are known best and matter most.
    chosen = np.argsort(-workers.n_votes, kind="stable")[:_MAX_WORKERS]
    rare_name, common_name = found.rare_name, str(found.classes.names[common])
    with_intervals = len(chosen) <= _MAX_INTERVALS
    values: list[dict[str, Any]] = [
        {
            "profile": PROFILE_WORDS[Profile(int(workers.profile[r]))],
            "words": f"{workers.names[r]}: recognises {percent(workers.accuracy[r, common])} of {common_name}, "
            f"{percent(workers.accuracy[r, rare])} of {rare_name}; {workers.n_votes[r]:,} votes",
        }
        for r in chosen.tolist()
    ]
    of_x, of_y = short_names([common_name, rare_name])
    n_classes = workers.accuracy.shape[1]
    chance = float(logit(np.array(1 / n_classes)))
    axes = []
    for field, channel, k, name in (("x", alt.X, common, of_x), ("y", alt.Y, rare, of_y)):
        ability, low, high = (logit(part[chosen, k]) for part in (workers.accuracy, workers.low, workers.high))
        for row, middle, lower, upper in zip(values, ability.tolist(), low.tolist(), high.tolist(), strict=True):
            row |= {field: middle, f"{field}_low": lower, f"{field}_high": upper}
        lowest, highest = (low, high) if with_intervals else (ability, ability)
        # Both sides of chance are always visible.
        ends = [min(chance - 1.0, float(lowest.min()) - 0.2), max(1.0, float(highest.max()) + 0.2)]
        axes.append(channel(f"{field}:Q", title=f"recognises {name}", **ability_scale(ends)))
    keys = tuple(
        Key(PROFILE_WORDS[profile], *look) for profile, look in _PROFILE_LOOKS.items() if workers.count(profile)
    )
    base = described_by_words(values, x=axes[0], y=axes[1])
    line = drawn_from([{"chance": chance}]).mark_rule(strokeDash=[4, 3], color=light("soft"))
    layers: list[Any] = [line.encode(x=alt.X("chance:Q")), line.encode(y=alt.Y("chance:Q"))]
    colour = colours("profile", keys)
    if with_intervals:
        faint = base.mark_rule(strokeWidth=1, opacity=0.35)
        layers += [
            faint.encode(x="x_low:Q", x2="x_high:Q", color=colour),
            faint.encode(y="y_low:Q", y2="y_high:Q", color=colour),
        ]
    layers.append(base.mark_point(filled=True, size=60, opacity=1).encode(color=colour, shape=shapes("profile", keys)))
    notes = ["Each mark is an annotator. The position is the share of each class that this person recognises."]
    dashed = f"Dashed: {chance_words(n_classes)}."
    notes.append(f"{dashed} Thin lines: 95% intervals." if with_intervals else dashed)
    if len(values) < len(workers.names):
        notes.append(f"The {len(values):,} annotators with the most votes, of {len(workers.names):,}.")
    return Chart(
        "ability-map",
        "How well annotators recognise each class",
        " ".join(notes),
        keys,
        dressed(alt.layer(*layers), 330),
    )


def trade_off_chart(found: Diagnosis, expected: TradeOff, true: TradeOff | None) -> Chart | None:
    """Recall against precision of one class: by the truth if there is any, and as expected if the votes show it."""
    name = str(found.classes.names[expected.class_code])
    curves = [(Key("expected", "common", "line" if true is None else "dashes"), expected)]
    if not found.expected[expected.class_code].recall.is_told:
        curves = []
    if true is not None:
        # The truth comes first; the expectation is for comparison, and has no marks.
        curves.insert(0, (Key("by the truth", "common", "line"), true))
    curves = [(key, curve) for key, curve in curves if np.isfinite(curve.recall).all()]
    if not curves:
        return None
    lines = [
        {"recall": float(recall), "precision": float(precision), "curve": key.description}
        for key, curve in curves
        for recall, precision in zip(curve.recall, curve.precision, strict=True)
    ]
    leading = curves[0][1]
    points = [
        {"recall": point.recall, "precision": point.precision, "who": key.description,
         "words": f"{key.description}: {point.n_flagged:,} items labelled {name}, recall {percent(point.recall)}, "
         f"precision {percent(point.precision)}"}
        for key, point in ((_RESULT, leading.chosen), (_VOTE, leading.majority))
        if isfinite(point.recall) and isfinite(point.precision)
    ]  # fmt: skip
    x = share_axis(alt.X, "recall", "recall: share of the class that is found")
    y = share_axis(alt.Y, "precision", "precision: share that is right")
    line_keys = [key for key, _ in curves]
    dashes = [[1, 0] if key.shape == "line" else [5, 3] for key in line_keys]
    dashed = scaled("curve", line_keys, dashes, alt.StrokeDash)
    line = drawn_from(lines, x=x, y=y, strokeDash=dashed, order=alt.Order("recall:Q"))
    point_keys = [_RESULT, _VOTE]
    marks = described_by_words(points, x=x, y=y, color=colours("who", point_keys), shape=shapes("who", point_keys))
    layers = alt.layer(
        line.mark_line(color=light("common"), strokeWidth=2), marks.mark_point(filled=True, opacity=1, size=95)
    )
    return Chart(
        f"trade-off-{expected.class_code + 1}",
        f"Finding {name}",
        f"From left to right, more items are labelled {name}, the most probable first.",
        (*line_keys, *point_keys),
        dressed(layers, 220),
    )


def calibration_chart(found: Diagnosis, by_probability: Calibration, by_posterior: Calibration) -> Chart:
    """Probability against the observed share; on the diagonal they are equal."""
    keys = (Key("probability on this page", "rare", "circle"), Key("posterior of the method", "vote", "square"))
    rows = [
        {"predicted": float(groups.predicted[g]), "observed": float(groups.observed[g]), "low": float(groups.low[g]),
         "high": float(groups.high[g]), "kind": key.description,
         "words": f"{key.description} about {percent(groups.predicted[g])}: {percent(groups.observed[g])} of "
         f"{groups.count[g]:,} items have the class"}
        for key, groups in zip(keys, (by_probability, by_posterior), strict=True)
        for g in range(len(groups.count))
    ]  # fmt: skip
    name = short(found.rare_name)
    x, y = (
        share_axis(alt.X, "predicted", f"probability of {name}"),
        share_axis(alt.Y, "observed", f"share that is {name}"),
    )
    ends = [{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}]
    base = described_by_words(rows, x=x, color=colours("kind", keys))
    low = alt.Y("low:Q", scale=alt.Scale(domain=[0, 1]))
    layers = alt.layer(
        drawn_from(ends, x=x, y=y).mark_line(color=light("soft"), strokeDash=[4, 3], strokeWidth=1),
        base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(y=low, y2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(y=y, shape=shapes("kind", keys)),
    )
    return Chart(
        "calibration",
        "Are the probabilities right?",
        "Items in groups of similar probability. On the dashed line, the share of the class equals the probability. "
        "Thin lines: 95% intervals.",
        keys,
        dressed(layers, 240),
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
    base = described_by_words(
        rows,
        x=alt.X("iteration:Q", title="iteration", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("objective:Q", title="objective", scale=alt.Scale(zero=False)),
    )
    layers = [base.mark_line(color=light("common"), strokeWidth=2)]
    if len(rows) <= 60:
        layers.append(base.mark_point(filled=True, size=30, color=light("common"), opacity=1))
    return Chart(
        "convergence",
        "Convergence",
        "The objective after each iteration; it is maximised, and a flat end means that the fit has converged.",
        (),
        dressed(alt.layer(*layers), 170),
    )
