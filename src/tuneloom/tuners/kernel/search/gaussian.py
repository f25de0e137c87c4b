"""A Gaussian process with one length scale per knob, fitted to little data."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.search.covariance import Covariance, Likeness, Single, Spacing, Towards
from tuneloom.tuners.kernel.search.encoding import Encoding, Matrix

Vector = NDArray[np.float64]
_JITTER = 1e-6
# Priors on the logarithms: length scales about half the diagonal of the space, so that
# far points are as alike among many knobs as among few; half of a unit amplitude each for
# what knobs do together and apart (targets are standardised), noise of a few per cent.
_SCALE_SPREAD = 1.0
_HALF_PRIOR = (float(np.log(0.5)), 1.0)
_NOISE_PRIOR = (-5.0, 1.5)


@dataclass
class GaussianProcess:
    """Regression on standardised targets at points of a space.

    The length scales, amplitudes and noise are the most probable ones given the data
    and weak priors; a refit starts from the last fit.
    """

    encoding: Encoding
    misfit: float = field(init=False, default=0.0)
    """How badly the last improvement of the scales left the data explained: minus the logarithm of their
    probability, but for a constant."""
    _covariance: Covariance = field(init=False, repr=False)
    _theta: Vector = field(init=False, repr=False)
    _towards: Towards = field(init=False, repr=False)
    _whitening: Single = field(init=False, repr=False)
    _weights: Single = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._covariance = Covariance(self.encoding)
        count = self._covariance.scales
        half_diagonal = float(np.log(np.sqrt(count) / 2))
        self._theta = np.array([half_diagonal] * count + [_HALF_PRIOR[0]] * 2 + [_NOISE_PRIOR[0]])
        spread = [_SCALE_SPREAD] * count + [_HALF_PRIOR[1]] * 2 + [_NOISE_PRIOR[1]]
        self._prior = (self._theta.copy(), np.array(spread))

    def fit(self, points: Points, targets: Vector, steps: int) -> None:
        """Learn from these observations; `steps` bounds the improvement of the scales, 0 keeps them."""
        spacing = self._covariance.among(points)
        if steps and len(targets) > 1:
            self._improve(spacing, targets, steps)
        likeness, noise = _unpacked(self._theta)
        factor = _factor(spacing.under(likeness).matrix, noise)
        self._weights = np.asarray(cho_solve((factor, True), targets), dtype=np.float32)
        inverse = solve_triangular(factor, np.eye(len(targets)), lower=True, check_finite=False)
        self._whitening = np.asarray(inverse.T, dtype=np.float32)
        self._towards = self._covariance.towards(points, likeness)

    def predict(self, points: Points) -> tuple[Vector, Vector]:
        """Mean and standard deviation of a measurement at each point.

        What the model calls noise counts: hardly any of it is the clock's, most is what a point
        has to itself, and the best of many points owes something to that.
        """
        likeness, noise = _unpacked(self._theta)
        cross = self._towards.of(points)
        with np.errstate(invalid="ignore"):  # numbers tell whether they are valid, and the flag was set once
            explained, mean = cross @ self._whitening, cross @ self._weights
        known = np.einsum("ij,ij->i", explained, explained)
        if not np.isfinite(known).all() or not np.isfinite(mean).all():
            raise FloatingPointError("the model of measurements predicts no number")
        variance = np.maximum(likeness.variance - known, 1e-9) + noise
        return mean.astype(np.float64), np.sqrt(variance, dtype=np.float64)

    def relevance(self) -> Vector:
        """How strongly each group matters: the inverse of its length scale."""
        return np.asarray(1.0 / _unpacked(self._theta)[0].lengths)

    def _improve(self, spacing: Spacing, targets: Vector, steps: int) -> None:
        bounds = [(-3.0, 4.0)] * self._covariance.scales + [(-4.0, 3.0)] * 2 + [(-12.0, 0.0)]
        found = minimize(
            self._misfit,
            self._theta,
            args=(spacing, targets),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps},
        )
        self._theta, self.misfit = np.asarray(found.x), float(found.fun)

    def _misfit(self, theta: Vector, spacing: Spacing, targets: Vector) -> tuple[float, Vector]:
        """Negative log posterior of the parameters, and its gradient."""
        likeness, noise = _unpacked(theta)
        shared = spacing.under(likeness)
        try:
            factor = _factor(shared.matrix, noise)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(theta)
        inverse = cho_solve((factor, True), np.eye(len(targets)), check_finite=False)
        weights = inverse @ targets
        slack = inverse - np.outer(weights, weights)
        lengths, together, apart = shared.pull(slack)
        gradient = np.array([*lengths, together, apart, 0.5 * noise * np.trace(slack)])
        offset = (theta - self._prior[0]) / self._prior[1]
        value = 0.5 * targets @ weights + np.log(np.diag(factor)).sum() + 0.5 * offset @ offset
        return float(value), gradient + offset / self._prior[1]


def _unpacked(theta: Vector) -> tuple[Likeness, float]:
    together, apart, noise = (float(value) for value in np.exp(theta[-3:]))
    return Likeness(np.exp(theta[:-3]), together, apart), noise


def _factor(covariance: Matrix, noise: float) -> Matrix:
    return np.asarray(np.linalg.cholesky(covariance + (noise + _JITTER) * np.eye(len(covariance))))
