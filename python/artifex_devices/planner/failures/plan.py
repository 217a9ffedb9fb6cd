# SPDX-License-Identifier: Apache-2.0
"""Results of failure drills. Immutable."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from artifex_devices._base.public_path import public
from artifex_devices._base.text import bytes_text, seconds_text
from artifex_devices.planner.report import Report, Summary, picked
from artifex_devices.planner.training import TrainingPlan

_HOURS_PER_WEEK = 168


@public("artifex_devices.planner")
@dataclass(frozen=True)
class PolicyOutcome:
    """Parts of the time of a run with failures, as means of the simulated runs.

    The parts `useful`, `saving`, `lost`, `waiting` and `missing` sum to 1.

    Attributes:
        policy: "restart", "spare" or "drop-a-replica".
        useful: Part of the time in which the run advances.
        low: 5th percentile of `useful` over the simulated runs.
        high: 95th percentile.
        saving: Part in which training stops for checkpoints.
        lost: Part whose work is lost, because it came after the last checkpoint.
        waiting: Part for restarts and restores.
        missing: Part of the throughput that dropped replicas would have had.
        useful_of_devices: Useful part of the time of all devices, idle spares included.
    """

    policy: str
    useful: float
    low: float
    high: float
    saving: float
    lost: float
    waiting: float
    missing: float
    useful_of_devices: float

    @property
    def lost_hours_per_week(self) -> float:
        """Hours of a week in which the run does not advance."""
        return _HOURS_PER_WEEK * (1 - self.useful)


@public("artifex_devices.planner")
@dataclass(frozen=True, eq=False)
class FailurePlan(Report):
    """Failures of a training run: intervals between checkpoints, and outcomes of policies; `print` shows them.

    Attributes:
        plan: The training run.
        mtbf_hours: Mean hours between failures of the run.
        save_seconds: Seconds that training stops for a checkpoint.
        restore_seconds: Seconds to read a checkpoint.
        restart_seconds: Seconds to notice a failure and to start all processes again.
        repair_hours: Hours until a failed node is repaired.
        spares: Number of spare nodes.
        checkpoint_bytes: Bytes of a checkpoint: parameters and optimizer state.
        interval: Seconds of work between checkpoints of the outcomes.
        young_interval: Young's interval, sqrt(2 x save x MTBF).
        daly_interval: Daly's interval of higher order.
        simulated_interval: Interval whose simulated runs with restarts are the most useful, of 17 intervals around
            Daly's.
        useful: Expected useful part of the time with restarts, by Daly's formula.
        outcomes: Outcomes of the policies: "restart", "spare" with spares, "drop-a-replica" with several replicas.
        days: Simulated days of each run.
        runs: Number of simulated runs.
        seed: Seed of the simulated failures.
    """

    plan: TrainingPlan
    mtbf_hours: float
    save_seconds: float
    restore_seconds: float
    restart_seconds: float
    repair_hours: float
    spares: int
    checkpoint_bytes: int
    interval: float
    young_interval: float
    daly_interval: float
    simulated_interval: float
    useful: float
    outcomes: tuple[PolicyOutcome, ...]
    days: float
    runs: int
    seed: int

    def _summary(self) -> Summary:
        head = (
            "policy",
            "useful",
            "5 to 95 %",
            "of all devices",
            "saving",
            "lost",
            "waiting",
            "missing",
            "lost a week",
        )
        rows = [
            (
                each.policy,
                f"{each.useful:.1%}",
                f"{each.low:.1%} to {each.high:.1%}",
                f"{each.useful_of_devices:.1%}",
                *(f"{getattr(each, name):.1%}" for name in ("saving", "lost", "waiting", "missing")),
                f"{each.lost_hours_per_week:.1f} h",
            )
            for each in self.outcomes
        ]
        facts = [
            ("failures", f"one each {self.mtbf_hours:.3g} h on average, at random times"),
            (
                "checkpoint",
                f"{bytes_text(self.checkpoint_bytes)}; training stops for {seconds_text(self.save_seconds)}, "
                f"restored in {seconds_text(self.restore_seconds)}",
            ),
            ("restart", f"{seconds_text(self.restart_seconds)}; {self.spares} spare node{'s' * (self.spares != 1)}, "
                        f"repaired after {self.repair_hours:.3g} h"),
            (
                "interval",
                f"{seconds_text(self.interval)} of work between checkpoints; Young "
                f"{seconds_text(self.young_interval)}, Daly {seconds_text(self.daly_interval)}, simulated "
                f"{seconds_text(self.simulated_interval)}",
            ),
            ("expected", f"{self.useful:.1%} useful with restarts (Daly 2006)"),
            ("simulated", f"{self.runs} runs of {self.days:.3g} days, seed {self.seed}"),
        ]  # fmt: skip
        return Summary(f"{self.plan.model.name} on {self.plan.cluster.name}, with failures", facts, head, rows)

    def _content(self) -> dict[str, object]:
        return {
            "kind": "failures",
            "model": self.plan.model.name,
            "cluster": self.plan.cluster.name,
            "devices": self.plan.devices,
            **picked(self, "mtbf_hours", "save_seconds", "restore_seconds", "restart_seconds"),
            **picked(self, "repair_hours", "spares"),
            **picked(self, "checkpoint_bytes", "interval", "young_interval", "daly_interval", "simulated_interval"),
            **picked(self, "useful", "days", "runs", "seed"),
            "outcomes": [
                {**asdict(each), "lost_hours_per_week": each.lost_hours_per_week} for each in self.outcomes
            ],
        }  # fmt: skip
