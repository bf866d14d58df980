"""Lines through pairs of times, and runs of frames."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.time_lines import TimePairs, best_line, best_run


def pairs(times: list[float], others: list[float]) -> TimePairs:
    return TimePairs(np.array(times, float), np.array(others, float), np.ones(len(times)))


class TestBestLine:
    """The line with the most votes."""

    @given(
        speed=st.floats(0.5, 2.0),
        offset=st.floats(-20, 60),
        count=st.integers(8, 40),
        noise=st.integers(0, 60),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_planted__line_is_found_among_noise(
        self, speed: float, offset: float, count: int, noise: int, seed: int
    ) -> None:
        """Frames at one a second, each paired with the nearest one, outvote pairs at random times."""
        random = np.random.default_rng(seed)
        times = 30.0 + np.arange(count)
        others = np.round(offset + 40 + speed * times)
        random_times, random_others = np.round(random.uniform(0, 600, (2, noise)))
        line = best_line(
            TimePairs(np.append(times, random_times), np.append(others, random_others), np.ones(count + noise)),
            step=1,
            other_step=1,
        )
        assert line is not None
        middle = np.array([float(times.mean())])
        assert abs(line.at(middle)[0] - (offset + 40 + speed * middle[0])) < 1.5
        assert line.support >= 0.6 * min(count, len(np.unique(others)))

    @given(seed=st.integers(0, 2**32 - 1), count=st.integers(3, 30))
    def test_order__of_pairs_does_not_matter(self, seed: int, count: int) -> None:
        """The line is a function of the set of votes."""
        random = np.random.default_rng(seed)
        times, others = np.round(random.uniform(0, 20, (2, count)))
        weights, order = np.linspace(0.7, 1.0, count), random.permutation(count)
        found = best_line(TimePairs(times, others, weights), step=1, other_step=1)
        again = best_line(TimePairs(times[order], others[order], weights[order]), step=1, other_step=1)
        assert (found is None) == (again is None)
        assert found is None or again is None or found.support == again.support

    def test_one_frame__is_no_line(self) -> None:
        """Many frames of one video that are alike one of the other one count as one vote, unless one is enough."""
        still = pairs([float(each) for each in range(20)], [7.0] * 20)
        assert best_line(still, step=1, other_step=1) is None
        assert best_line(still, step=1, other_step=1, least=1) is not None

    def test_far_apart__votes_are_two_lines(self) -> None:
        """Votes with a long gap between them, as of two clips in a compilation, do not support each other."""
        both = pairs([0, 1, 2, 3, 100, 101, 102], [0, 1, 2, 3, 100, 101, 102])
        line = best_line(both, step=1, other_step=1)
        assert line is not None
        assert (line.start, line.end, line.support) == (0, 3, 4)
        rest = best_line(both.take(~line.covers(both, 1, 1)), step=1, other_step=1)
        assert rest is not None
        assert (rest.start, rest.end, rest.support) == (100, 102, 3)

    def test_nothing__has_no_line(self) -> None:
        """Without votes there is no line."""
        assert best_line(pairs([], []), step=1, other_step=1) is None


class TestBestRun:
    """The run of frames with the largest gain."""

    @given(
        speed=st.floats(0.5, 2.0),
        shift=st.floats(-0.9, 0.9),
        first=st.integers(2, 20),
        length=st.integers(12, 30),
        seed=st.integers(0, 2**32 - 1),
    )
    def test_planted__run_is_found(self, speed: float, shift: float, first: int, length: int, seed: int) -> None:
        """Frames gain on one stretch of one line; elsewhere they lose."""
        random = np.random.default_rng(seed)
        times, others = np.arange(60) / 6, np.arange(400) / 12
        start_other = 3.0
        true = start_other + speed * times
        gains = random.uniform(-1, -0.2, (60, 400)).astype(np.float32)
        rows = np.arange(first, first + length)
        columns = np.round(true[rows] * 12).astype(int)
        for aside in (-1, 0, 1):
            gains[rows, columns + aside] = 0.9 if aside == 0 else 0.5
        ends = (start_other + shift, float(true[-1]) + shift)
        run = best_run(gains, times, others, ends, reach=1.0)
        assert (abs(run.first - first), abs(run.last - rows[-1])) <= (1, 1)
        middle = int(rows[length // 2])
        assert abs(others[run.others[middle]] - true[middle]) < 0.2

    def test_nothing__gains(self) -> None:
        """Where all frames differ, there is no run."""
        run = best_run(np.full((10, 10), -1, np.float32), np.arange(10.0), np.arange(10.0), (0.0, 9.0), reach=1.0)
        assert run.last < run.first
        assert run.score == 0

    def test_end__of_the_other_video_ends_the_run(self) -> None:
        """Frames beyond the last one of the second video lose."""
        gains = np.ones((20, 8), np.float32)
        run = best_run(gains, np.arange(20.0), np.arange(8.0), (0.0, 19.0), reach=0.1)
        assert run.first == 0
        assert run.last in (6, 7, 8)
