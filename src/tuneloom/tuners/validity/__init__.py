"""The probability that a configuration is valid, learned from every failure seen.

Plain numeric columns go in and probabilities come out, so that any tuner can use it.
Give columns in the units of limits (logarithms of sizes): products and ratios of
knobs are then sums and differences, which is what resource limits look like.
"""

from tuneloom.tuners.validity.model import ValidityModel
from tuneloom.tuners.validity.start import spread, squared_distances

__all__ = ["ValidityModel", "spread", "squared_distances"]
