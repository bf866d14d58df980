"""Layout of rows in the plane, so that neighbours lie beside each other.

This is t-SNE (L. van der Maaten & G. Hinton, "Visualizing Data using t-SNE", JMLR 2008) with two changes that make it
fast without compiled code. The affinities are those of the neighbour graph, equal for all neighbours of a row
(J. N. Böhm, P. Berens & D. Kobak, "Attraction-Repulsion Spectrum in Neighbor Embeddings", JMLR 2022). The repulsion of
all rows by all others is the gradient of a potential, which two Fourier transforms compute on a grid, as in
particle-mesh simulations (R. W. Hockney & J. W. Eastwood, "Computer Simulation Using Particles", 1981; for t-SNE:
G. C. Linderman et al., "Fast interpolation-based t-SNE", Nature Methods 2019). The sizes of steps follow A. C. Belkina
et al., Nature Communications 2019, and the start D. Kobak & P. Berens, ibid.: two principal components.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.vector_sources import VectorSource
from framedex.core.progress import ShareProgress

NEIGHBOURS_USED = 10
"""The number of neighbours that attract a row; more keep the arrangement of the whole no better, and fewer details."""
Points = npt.NDArray[np.float32]
_SAMPLE = 20_000  # rows for the principal components
_BLOCK_ROWS = 16_384
_CELL = 0.5  # side of a grid cell; the forces vary over a distance of 1
_FEWEST_CELLS, _MOST_CELLS = 64, 1_536  # of a side of the grid
_LINES = 64  # of the grid, for one thread at a time
_SIDE_STEP = 1.15  # sides grow by this factor, so that the kernel is rarely transformed again
_LONGEST_STEP = 5.0
_JITTER = 1e-3  # spread of rows that would begin at one place


@dataclass(frozen=True)
class _Stage:
    """A part of the optimisation.

    Attributes:
        steps: the number of steps.
        attraction: the factor of the attraction ("exaggeration").
        momentum: the share of a step that the next one repeats.
    """

    steps: int
    attraction: float
    momentum: float


_ARRANGE = _Stage(100, 12.0, 0.8)
_SPREAD = _Stage(300, 1.0, 0.9)
_ADJUST = _Stage(60, 1.0, 0.5)


def place_rows(
    neighbours: npt.NDArray[np.int32], start: Points, *, is_known: bool, seed: int = 0, progress: ShareProgress
) -> Points:
    """Return places of rows in the plane: float32, shape (N, 2), centred. The same input and seed give the same places.

    Memory: some 200 bytes a row, beside the neighbours.

    Args:
        neighbours: int32, shape (N, k), most similar first; -1 at the end of a list. Up to 10 of them are used.
        start: float32, shape (N, 2): the places to begin with.
        is_known: whether these come from an earlier layout, which is only adjusted, so that it stays recognisable.
        seed: seed of the jitter that moves equal places apart.
        progress: called with the share that is done; raises to stop.
    """
    if len(start) < 2 or not neighbours.shape[1]:
        return np.asarray(start - start.mean(axis=0) if len(start) else start, dtype=np.float32)
    jitter = np.random.default_rng(seed).standard_normal(start.shape, dtype=np.float32)
    places = np.ascontiguousarray((start + _JITTER * jitter).T, dtype=np.float32)
    stages = (_ADJUST,) if is_known else (_ARRANGE, _SPREAD)
    total, done = sum(each.steps for each in stages), 0
    with ThreadPoolExecutor(os.cpu_count() or 1, "framedex-layout") as pool:
        forces = _Forces(neighbours, pool)
        for stage in stages:
            for _ in _descend(places, stage, forces):
                done += 1
                progress(done / total)
    return np.ascontiguousarray(places.T)


def principal_components(vectors: VectorSource, *, seed: int = 0) -> Points:
    """Return the first two principal components of vectors: float32, shape (N, 2), the first of standard deviation 1.

    Args:
        vectors: the rows; they are read once in blocks, and a sample of them before.
        seed: seed of the sample.
    """
    if not len(vectors):
        return np.empty((0, 2), dtype=np.float32)
    random = np.random.default_rng(seed)
    sample = vectors.take(np.sort(random.permutation(len(vectors))[:_SAMPLE])).astype(np.float64)
    mean = sample.mean(axis=0)
    axes = np.linalg.eigh((sample - mean).T @ (sample - mean))[1][:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1, 1)  # signs are arbitrary
    axes = np.pad(axes, ((0, 0), (0, 2 - axes.shape[1]))).astype(np.float32)
    out, centre = np.empty((len(vectors), 2), dtype=np.float32), mean.astype(np.float32) @ axes
    for first, block in vectors.blocks():
        np.subtract(block @ axes, centre, out=out[first : first + len(block)])
    spread = float(out[:, 0].std())
    return out / np.float32(spread) if spread > 0 else out


def aligned(places: Points, onto: Points, rows: npt.NDArray[np.int64], onto_rows: npt.NDArray[np.int64]) -> Points:
    """Return places moved, turned and mirrored, so that some rows are as near as possible to where they were.

    The scale stays (Procrustes analysis without scaling).

    Args:
        places: float32, shape (N, 2).
        onto: float32, shape (M, 2): earlier places.
        rows: int64, shape (K,): rows that are in both.
        onto_rows: int64, shape (K,): their rows in *onto*.
    """
    if len(rows) < 2:
        return places
    here, there = places[rows].astype(np.float64), onto[onto_rows].astype(np.float64)
    here_mean, there_mean = here.mean(axis=0), there.mean(axis=0)
    left, _, right = np.linalg.svd((here - here_mean).T @ (there - there_mean))
    turned = (places - here_mean) @ (left @ right) + there_mean
    return np.asarray(turned, dtype=np.float32)


def _descend(places: Points, stage: _Stage, forces: "_Forces") -> Iterator[None]:
    """Move places step by step: gradient descent with momentum, and gains as in van der Maaten's t-SNE.

    Args:
        places: float32, shape (2, N).
        stage: the part of the optimisation.
        forces: the forces on the places.
    """
    speed, gain = np.zeros_like(places), np.ones_like(places)
    # With the usual rate, N / attraction, forces that are divided by N become steps; 1/4 while nothing is exaggerated.
    rate = np.float32(4 / max(stage.attraction, 4))
    for _ in range(stage.steps):
        force = forces(places, stage.attraction)
        force *= rate
        slows = (force > 0) != (speed > 0)
        gain += np.float32(0.2)
        gain[slows] = (gain[slows] - np.float32(0.2)) * np.float32(0.8)
        np.maximum(gain, np.float32(0.01), out=gain)
        force *= gain
        speed *= np.float32(stage.momentum)
        speed += force
        np.clip(speed, -_LONGEST_STEP, _LONGEST_STEP, out=speed)
        places += speed
        places -= places.mean(axis=1, keepdims=True)
        yield


class _Forces:
    """The forces on rows: neighbours attract each other, and all rows push each other away.

    Args:
        neighbours: int32, shape (N, k), most similar first; -1 at the end of a list.
        pool: threads.
    """

    def __init__(self, neighbours: npt.NDArray[np.int32], pool: ThreadPoolExecutor) -> None:
        used = neighbours[:, :NEIGHBOURS_USED]
        own = np.arange(len(used), dtype=np.int32)[:, None]
        # A row in the place of a missing neighbour pulls with no force.
        self._columns = np.ascontiguousarray(np.where(used < 0, own, used).T)
        self._pool, self._potential = pool, _Potential()
        self._pulls = np.empty((len(self._columns), 2, len(used)), dtype=np.float32)
        # Each of the two rows of a pair gets half of what either list says.
        self._share = np.float32(0.5 / len(self._columns))

    def __call__(self, places: Points, attraction: float) -> Points:
        """Return the force on each row, times the number of rows: float32, shape (2, N)."""
        force = self._attraction(places)
        force *= np.float32(attraction)
        total, gradient = self._potential(places, self._pool)
        gradient *= np.float32(0.5 * places.shape[1] / max(total, 1e-12))
        force -= gradient
        return force

    def _attraction(self, places: Points) -> Points:
        """Return the sum of (place of the neighbour - own place) / (1 + distance²) over both directions."""
        force, count = np.zeros_like(places), places.shape[1]

        def pull(first: int) -> None:
            part = slice(first, first + _BLOCK_ROWS)
            for column, out in zip(self._columns[:, part], self._pulls[:, :, part], strict=True):
                np.subtract(places[:, column], places[:, part], out=out)
                square = np.einsum("ij,ij->j", out, out)
                square += 1
                np.multiply(out, np.divide(self._share, square, out=square), out=out)
                force[:, part] += out

        def pull_back(axis: int) -> None:
            for column, pulls in zip(self._columns, self._pulls[:, axis], strict=True):
                force[axis] -= np.bincount(column, weights=pulls, minlength=count)

        list(self._pool.map(pull, range(0, count, _BLOCK_ROWS)))
        list(self._pool.map(pull_back, range(2)))
        return force


class _Potential:
    """The potential of the repulsion, Σ 1 / (1 + distance²), on a grid that covers all places.

    Few places far apart need more nodes than they have pairs. Then the sum goes over all pairs instead.
    """

    def __init__(self) -> None:
        self._key: tuple[int, float] | None = None
        self._kernel = np.empty((0, 0), np.float32)
        self._near = (1.0, 1.0, 1.0)  # the potential on the own node, the next one, and the next one across
        self._padded = 0

    def __call__(self, places: Points, pool: ThreadPoolExecutor) -> tuple[float, Points]:
        """Return the sum of the potential of all others at all places, and its gradient there: float32, shape (2, N).

        Each place is spread over the four nodes around it; values between nodes are interpolated in the same way.
        """
        low, high = places.min(axis=1), places.max(axis=1)
        side, cells = _grid(float((high - low).max()))
        if places.shape[1] < cells / 2:
            return _sum_over_pairs(places)
        cell = self._fit(cells, side)
        corner = (low + high - cell * cells) / 2
        nodes = cells + 6
        at = (places - corner[:, None]) * np.float32(1 / cell) + 2
        whole = at.astype(np.int32)
        at -= whole
        first = whole[0] * nodes + whole[1]
        rest = 1 - at
        weights = (rest[0] * rest[1], rest[0] * at[1], at[0] * rest[1], at[0] * at[1])
        offsets = (0, 1, nodes, nodes + 1)
        spread = pool.map(
            lambda each: np.bincount(first + each[1], weights=each[0], minlength=nodes * nodes),
            zip(weights, offsets, strict=True),
        )
        mass = np.sum(list(spread), axis=0).astype(np.float32).reshape(nodes, nodes)
        field = self._convolved(mass, pool)
        slopes = _slope(field, cell), _slope(field.T, cell).T

        def between(values: Points) -> Points:
            flat = values.ravel()
            out = weights[0] * flat[first]
            for weight, offset in zip(weights[1:], offsets[1:], strict=True):
                out += weight * flat[first + offset]
            return np.asarray(out)

        value, *gradient = pool.map(between, map(np.ascontiguousarray, (field, *slopes)))
        # What a place contributes to its own potential, by the nodes over which it is spread.
        same = rest * rest + at * at
        own = same.prod(axis=0), (1 - same).prod(axis=0)
        of_itself = own[0] * self._near[0] + (1 - own[0] - own[1]) * self._near[1] + own[1] * self._near[2]
        return float((value - of_itself).sum(dtype=np.float64)), np.stack(gradient)

    def _fit(self, cells: int, side: float) -> float:
        """Return the side of a cell of a grid; prepare the kernel."""
        key = cells, side / cells
        if key != self._key:
            self._key, self._padded = key, _fast_length(2 * (cells + 6))
            steps = np.arange(self._padded)
            squares = np.square(np.minimum(steps, self._padded - steps) * key[1])
            kernel = np.fft.rfft2(1 / (1 + squares[:, None] + squares)).real.T
            # Spreading and interpolation smooth the potential; this sharpens it as much.
            smoothing = [np.sinc(np.fft.rfftfreq(self._padded)) ** 4, np.sinc(np.fft.fftfreq(self._padded)) ** 4]
            kernel /= smoothing[0][:, None] * smoothing[1]
            near = np.fft.irfft2(kernel.T, (self._padded, self._padded))[:2, :2]
            self._near = float(near[0, 0]), float(near[0, 1]), float(near[1, 1])
            self._kernel = np.ascontiguousarray(kernel, dtype=np.float32)
        return key[1]

    def _convolved(self, mass: Points, pool: ThreadPoolExecutor) -> Points:
        """Return the potential at each node of the mass at all nodes: float32, shape (nodes, nodes).

        The transforms go along lines that are beside each other in memory, and leave out lines that are known to be 0,
        or that nobody reads.
        """
        nodes, padded = len(mass), self._padded
        across = np.empty((nodes, padded // 2 + 1), np.complex64)
        along = np.empty((padded // 2 + 1, nodes), np.complex64)
        out = np.empty_like(mass)

        def forward(part: slice) -> None:
            across[part] = np.fft.rfft(mass[part], padded)

        def convolve(part: slice) -> None:
            spectrum = np.fft.fft(across[:, part].T, padded)
            spectrum *= self._kernel[part]
            along[part] = np.fft.ifft(spectrum)[:, :nodes]

        def back(part: slice) -> None:
            out[part] = np.fft.irfft(along[:, part].T, padded)[:, :nodes]

        for transform, lines in ((forward, nodes), (convolve, len(along)), (back, nodes)):
            list(pool.map(transform, (slice(at, at + _LINES) for at in range(0, lines, _LINES))))
        return out


def _grid(extent: float) -> tuple[float, int]:
    """Return the side of a grid that covers an extent, and the number of its cells on a side."""
    side = float(_SIDE_STEP ** np.ceil(np.log(max(extent, 1e-3) * 1.001) / np.log(_SIDE_STEP)))
    return side, int(np.clip(np.ceil(side / _CELL), _FEWEST_CELLS, _MOST_CELLS))


def _sum_over_pairs(places: Points) -> tuple[float, Points]:
    """Return what :class:`_Potential` does, without a grid; memory is quadratic in the number of places."""
    apart = places[:, :, None] - places[:, None, :]
    potential = 1 / (1 + np.einsum("aij,aij->ij", apart, apart))
    total = float(potential.sum(dtype=np.float64)) - places.shape[1]  # a place adds 1 to its own potential
    return total, np.einsum("aij,ij->ai", apart, potential * potential) * np.float32(-2)


def _fast_length(least: int) -> int:
    """Return the smallest even number from *least* on that has no prime factor above 5, for fast transforms."""
    length = least + least % 2
    while 30**40 % length:
        length += 2
    return length


def _slope(values: Points, step: float) -> Points:
    """Return the derivative of values along the first axis by differences of fourth order; 0 at both ends."""
    out = np.zeros_like(values)
    near, far = values[3:-1] - values[1:-3], values[4:] - values[:-4]
    out[2:-2] = near * np.float32(2 / (3 * step)) - far * np.float32(1 / (12 * step))
    return out
