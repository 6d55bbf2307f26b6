"""Figures: what a bench says of its rounds. Ratios within a round, their median, and a bootstrap interval around it."""
import dataclasses
import random
import statistics

NOISE = 1.15  # a round counts when its own runs of the limit differ by no more


@dataclasses.dataclass(frozen=True)
class Bar:
    """What is to be reached: `value` at most (or, with at_least, at least), in `unit` ("" = a ratio)."""
    value: float
    at_least: bool = False
    unit: str = ""

    def held(self, figure):
        return figure >= self.value if self.at_least else figure <= self.value

    def __str__(self):
        return f"{'≥' if self.at_least else '≤'} {self.value:g}{' ' + self.unit if self.unit else ''}"


@dataclasses.dataclass
class Figure:
    """One line of the table.

    limit, ours  medians of the rounds, already with their unit; "" when the figure has no such part
    samples      one number a round: the ratio, or the figure itself
    dropped      rounds that were too noisy to count
    """
    name: str
    workload: str
    samples: list
    bar: Bar | None = None
    limit: str = ""
    ours: str = ""
    dropped: int = 0

    def __post_init__(self):
        self.ratio = statistics.median(self.samples) if self.samples else None
        self.lo, self.hi = interval(self.samples) if self.samples else (None, None)

    def held(self):
        """None when there is no bar, or nothing could be measured."""
        return None if self.bar is None or self.ratio is None else self.bar.held(self.ratio)

    def as_json(self):
        return {"name": self.name, "workload": self.workload, "ratio": self.ratio, "lo": self.lo, "hi": self.hi,
                "bar": str(self.bar) if self.bar else None, "held": self.held(), "rounds": len(self.samples),
                "dropped": self.dropped, "limit": self.limit, "ours": self.ours}


def interval(samples, tries=2000):
    """The middle 95 % of the medians of resampled rounds."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(samples, k=len(samples))) for _ in range(tries))
    return medians[int(0.025 * tries)], medians[int(0.975 * tries) - 1]


def seconds(value):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def compare(name, workload, rounds, bar, speed=False):
    """A Figure from rounds {"limit_s": seconds or list, "ours_s": the same}.

    The ratio is ours / limit in time; with speed, limit / ours: how much of the limit's speed is reached.
    """
    samples, limits, ours = [], [], []
    for one in rounds:
        limit, own = aslist(one["limit_s"]), aslist(one["ours_s"])
        if max(limit) > NOISE * min(limit):
            continue
        limits.append(statistics.mean(limit))
        ours.append(statistics.mean(own))
        samples.append(limits[-1] / ours[-1] if speed else ours[-1] / limits[-1])
    return Figure(name, workload, samples, bar, limit=seconds(statistics.median(limits)) if limits else "",
                  ours=seconds(statistics.median(ours)) if ours else "", dropped=len(rounds) - len(samples))


def aslist(value):
    return value if isinstance(value, list) else [value]
