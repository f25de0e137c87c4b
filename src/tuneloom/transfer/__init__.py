"""Schedules given from one task to another: who is like whom, who gives, and what fits.

Functions on data; only `traces` touches TVM.
"""

from tuneloom.transfer.classes import anchor_of, same_anchor
from tuneloom.transfer.clusters import CLUSTERINGS, TaskCluster
from tuneloom.transfer.donors import Donor, FittedSeed, best_sketch, fitted_seeds, lessons_for
from tuneloom.transfer.fitting import VARIANTS, DoesNotFit, fit_decisions
from tuneloom.transfer.forms import Form, form_of
from tuneloom.transfer.shapes import nearest, shape_distance
from tuneloom.transfer.similarity import SIMILARITIES, KernelProfile

__all__ = [
    "CLUSTERINGS",
    "SIMILARITIES",
    "VARIANTS",
    "DoesNotFit",
    "Donor",
    "FittedSeed",
    "Form",
    "KernelProfile",
    "TaskCluster",
    "anchor_of",
    "best_sketch",
    "fit_decisions",
    "fitted_seeds",
    "form_of",
    "lessons_for",
    "nearest",
    "same_anchor",
    "shape_distance",
]
