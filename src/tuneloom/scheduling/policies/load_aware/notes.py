"""What the load-aware policy knows of one job."""

from dataclasses import dataclass, field

from tuneloom.scheduling.policies.load_aware.appetites import Appetite
from tuneloom.scheduling.policies.load_aware.fairness import Account
from tuneloom.scheduling.policies.load_aware.paths import Path


@dataclass(slots=True)
class JobNotes:
    """Its fair share so far, where its stages lead, and how it spends its time."""

    account: Account
    path: Path = field(default_factory=Path)
    appetite: Appetite = field(default_factory=Appetite)
