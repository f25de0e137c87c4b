"""A Gaussian process with one length scale per knob, fitted to little data."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize

from tuneloom.tuners.kernel.encoding import Matrix

Vector = NDArray[np.float64]
_ROOT5 = np.sqrt(5.0)
_JITTER = 1e-6
# Priors on the logarithms: length scales about half the diagonal of the space, so that
# far points are as alike among many knobs as among few; unit amplitude (targets are
# standardised), noise of a few per cent.
_SCALE_SPREAD = 1.0
_AMPLITUDE_PRIOR = (0.0, 1.0)
_NOISE_PRIOR = (-5.0, 1.5)


@dataclass
class GaussianProcess:
    """Matérn-5/2 regression on standardised targets; `groups` names each column's length scale.

    The length scales, amplitude and noise are the most probable ones given the data
    and weak priors; a refit starts from the last fit.
    """

    groups: NDArray[np.int64]
    _theta: Vector = field(init=False, repr=False)
    _seen: Matrix = field(init=False, repr=False)
    _factor: Matrix = field(init=False, repr=False)
    _weights: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        count = int(self.groups.max()) + 1
        half_diagonal = float(np.log(np.sqrt(count) / 2))
        self._theta = np.array([half_diagonal] * count + [_AMPLITUDE_PRIOR[0], _NOISE_PRIOR[0]])
        spread = [_SCALE_SPREAD] * count + [_AMPLITUDE_PRIOR[1], _NOISE_PRIOR[1]]
        self._prior = (self._theta.copy(), np.array(spread))

    def fit(self, inputs: Matrix, targets: Vector, steps: int) -> None:
        """Learn from these observations; `steps` bounds the improvement of the scales, 0 keeps them."""
        squares = self._squares(inputs)
        if steps and len(targets) > 1:
            self._improve(squares, targets, steps)
        scales, amplitude, noise = self._unpacked(self._theta)
        kernel = amplitude * _matern(np.tensordot(scales**-2, squares, 1))
        self._factor = np.asarray(
            np.linalg.cholesky(kernel + (noise + _JITTER) * np.eye(len(targets))), np.float64
        )
        self._weights = np.asarray(cho_solve((self._factor, True), targets))
        self._seen = inputs

    def predict(self, inputs: Matrix) -> tuple[Vector, Vector]:
        """Mean and standard deviation at each row."""
        scales, amplitude, _ = self._unpacked(self._theta)
        weights = 1.0 / scales[self.groups]
        cross = amplitude * _matern(_distances(inputs * weights, self._seen * weights))
        explained = solve_triangular(self._factor, cross.T, lower=True, check_finite=False)
        variance = np.maximum(amplitude - np.einsum("ij,ij->j", explained, explained), 1e-9)
        return cross @ self._weights, np.sqrt(variance)

    def relevance(self) -> Vector:
        """How strongly each group matters: the inverse of its length scale."""
        return np.asarray(1.0 / self._unpacked(self._theta)[0])

    def _squares(self, inputs: Matrix) -> Matrix:
        count = int(self.groups.max()) + 1
        return np.stack(
            [_distances(inputs[:, self.groups == g], inputs[:, self.groups == g]) for g in range(count)]
        )

    def _unpacked(self, theta: Vector) -> tuple[Vector, float, float]:
        return np.exp(theta[:-2]), float(np.exp(theta[-2])), float(np.exp(theta[-1]))

    def _improve(self, squares: Matrix, targets: Vector, steps: int) -> None:
        bounds = [(-3.0, 4.0)] * (len(self._theta) - 2) + [(-3.0, 3.0), (-12.0, 0.0)]
        found = minimize(
            self._misfit,
            self._theta,
            args=(squares, targets),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps},
        )
        self._theta = np.asarray(found.x)

    def _misfit(self, theta: Vector, squares: Matrix, targets: Vector) -> tuple[float, Vector]:
        """Negative log posterior of the parameters, and its gradient."""
        scales, amplitude, noise = self._unpacked(theta)
        distance = np.tensordot(scales**-2, squares, 1)
        root = np.sqrt(distance)
        decay = np.exp(-_ROOT5 * root)
        shape = (1 + _ROOT5 * root + 5 / 3 * distance) * decay
        kernel = amplitude * shape + (noise + _JITTER) * np.eye(len(targets))
        try:
            factor = np.linalg.cholesky(kernel)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(theta)
        inverse = cho_solve((factor, True), np.eye(len(targets)), check_finite=False)
        weights = inverse @ targets
        slack = inverse - np.outer(weights, weights)
        pull = slack * (-5 / 6 * amplitude * (1 + _ROOT5 * root) * decay)
        gradient = np.empty_like(theta)
        gradient[:-2] = -np.einsum("gij,ij->g", squares, pull) * scales**-2
        gradient[-2] = 0.5 * amplitude * np.einsum("ij,ij->", slack, shape)
        gradient[-1] = 0.5 * noise * np.trace(slack)
        offset = (theta - self._prior[0]) / self._prior[1]
        value = 0.5 * targets @ weights + np.log(np.diag(factor)).sum() + 0.5 * offset @ offset
        return float(value), gradient + offset / self._prior[1]


def _matern(distance: Matrix) -> Matrix:
    root = np.sqrt(distance)
    return np.asarray((1 + _ROOT5 * root + 5 / 3 * distance) * np.exp(-_ROOT5 * root))


def _distances(left: Matrix, right: Matrix) -> Matrix:
    """Squared Euclidean distances between all rows."""
    both = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None] - 2 * left @ right.T
    return np.asarray(np.maximum(both, 0.0))
