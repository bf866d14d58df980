"""Counts and times of requests, as Prometheus reads them."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from framedex.service.state import ServiceState

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)


class Metrics:
    """The metrics of a running service.

    Args:
        state: the running service.
    """

    def __init__(self, state: ServiceState) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter("framedex_requests", "Requests.", (*labels, "status"), registry=self._registry)
        self._seconds = Histogram(
            "framedex_request_seconds", "Seconds of requests.", labels, buckets=_SECONDS, registry=self._registry
        )
        waiting = Gauge("framedex_heavy_waiting", "Heavy requests that wait for a place.", registry=self._registry)
        waiting.set_function(lambda: state.heavy.statistics().tasks_waiting)
        datasets = Gauge("framedex_datasets", "Datasets.", registry=self._registry)
        datasets.set_function(lambda: len(state.workspace.datasets(all_namespaces=True)))

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; the route is its pattern, so that ids make no further series."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self._registry)
