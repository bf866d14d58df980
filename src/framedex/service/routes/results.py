"""Results of queries: rows by position, quantiles, masks, facets; embeddings."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import pyarrow as pa
from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from framedex.access import Action
from framedex.api.result_set import ResultSet
from framedex.errors import InvalidInput, NotFound
from framedex.hub.results import ResultQuery
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW, ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.models_results import (
    FacetCount,
    FacetCounts,
    ResultPosition,
    ResultQuantiles,
    ResultRows,
    ResultsInfo,
)
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("results")

MOST_JSON_ROWS = 500
"""The maximum number of rows of an answer as JSON."""
MOST_ARROW_ROWS = 100_000
"""The maximum number of rows of an answer as an Arrow stream."""
_BLOCK_ROWS = 4096
_ONE = "/dataset/{dataset_id}/results/{rid}"
_FILE_PATH, _PATH, _URL = "file_path", "path", "url"
_CACHED = "private, no-cache"
_Positions = Annotated[list[Annotated[int, Query(ge=0, le=2**31)]] | None, Query(max_length=MOST_JSON_ROWS)]
_Names = Annotated[list[Annotated[str, Query(max_length=1000)]] | None, Query(max_length=200)]


@router.post("/dataset/{dataset_id}/results")
@needs(Action.DATASET_VIEW, heavy=True)
def open_results(
    dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, body: ResultQuery
) -> ResultsInfo:
    """Return the id of the results of a query, which are kept for ten minutes after their last use.

    The same query in the same state of the dataset has the same id. A user has up to 16 results.
    """
    results = service.hub.results.open(actor, dataset, body)
    return ResultsInfo.of(results)


@router.get(_ONE + "/rows", response_model=ResultRows, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW)
def results_rows(
    dataset_id: str,
    rid: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ARROW_ROWS)] = 100,
    columns: _Names = None,
    at: _Positions = None,
) -> Any:
    """Return rows of results: up to 500 as JSON, or up to 100,000 as an Arrow stream.

    With ``at`` these are the rows at some positions, as JSON; those beyond the end are left out.

    The columns are those of a table in Python, and on request ``url``, the path of the file in this API, and ``v``,
    which changes with the content of the file, and ``in_basket``. ``file_path`` is the path within the source.
    """
    results, as_arrow = service.hub.results.get(actor, dataset, rid), wants_arrow(request)
    if at is not None and as_arrow:
        raise InvalidInput(f"rows at some positions come as JSON, not as {ARROW}")
    if not as_arrow and limit > MOST_JSON_ROWS:
        raise InvalidInput(f"limit is 1 to {MOST_JSON_ROWS} for JSON, not {limit}; {ARROW} takes more")
    etag = _etag(rid, offset, limit, columns, at, as_arrow)
    headers = {"ETag": etag, "Cache-Control": _CACHED, "Vary": "Accept"}
    if etag in re.split(r",\s*", request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    if as_arrow:
        return _stream_of(dataset.id, results, offset, limit, columns, headers)
    rows = _rows_of(dataset.id, results, offset, limit, columns, at).to_pylist()
    page = ResultRows(offset=offset, count=len(results), generation=results.generation, rows=rows)
    return Response(page.model_dump_json(), media_type="application/json", headers=headers)


@router.get(_ONE + "/quantiles")
@needs(Action.DATASET_VIEW)
def results_quantiles(
    dataset_id: str,
    rid: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    n: Annotated[int, Query(ge=2, le=1000)] = 200,
    column: Annotated[str | None, Query(max_length=1000)] = None,
) -> ResultQuantiles:
    """Return values of a column at evenly spaced rows; by default of that by which the results are sorted."""
    results = service.hub.results.get(actor, dataset, rid)
    name = column or results.order()
    positions, values = results.quantiles(n, _PATH if name == _FILE_PATH else name)
    return ResultQuantiles(column=name, positions=positions, values=values)


@router.get(_ONE + "/position")
@needs(Action.DATASET_VIEW)
def results_position(
    dataset_id: str,
    rid: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    media: Annotated[str, Query(max_length=1000)],
    required: bool = True,
) -> ResultPosition:
    """Return the position of a media item among results.

    One that is not among them is an error, or with ``required=false`` has the position null.
    """
    results = service.hub.results.get(actor, dataset, rid)
    try:
        return ResultPosition(position=results.position(media))
    except NotFound:
        if required:
            raise
        return ResultPosition(position=None)


@router.get(
    _ONE + "/mask",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
)
@needs(Action.DATASET_VIEW)
def results_mask(
    dataset_id: str, rid: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, request: Request
) -> Response:
    """Return a bit for each row of the dataset, in the order of ingestion, the least significant bit first."""
    results, etag = service.hub.results.get(actor, dataset, rid), f'"{rid}-mask"'
    headers = {"ETag": etag, "Cache-Control": _CACHED, "X-Row-Count": str(results.total)}
    if etag in re.split(r",\s*", request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(results.mask(), media_type="application/octet-stream", headers=headers)


@router.get(_ONE + "/facets")
@needs(Action.DATASET_VIEW, heavy=True)
def results_facets(
    dataset_id: str,
    rid: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    field: Annotated[str, Query(max_length=1000)],
    q: Annotated[str, Query(max_length=1000)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> FacetCounts:
    """Return the values of a field in results with their numbers of rows, the most frequent first.

    ``q`` is a text that the values contain, whatever the case.
    """
    results = service.hub.results.get(actor, dataset, rid)
    values, total = results.facets(_PATH if field == _FILE_PATH else field, q, limit)
    return FacetCounts(field=field, values=[FacetCount(value=each, count=n) for each, n in values], total=total)


@router.get("/dataset/{dataset_id}/embeddings", response_class=StreamingResponse, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def embeddings_stream(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    rid: Annotated[str | None, Query(max_length=1000)] = None,
) -> StreamingResponse:
    """Return the ids and embeddings of all media, or of results, as an Arrow stream; rows without one are left out."""
    results = ResultSet(dataset.view) if rid is None else service.hub.results.get(actor, dataset, rid)
    blocks = results.embedding_blocks()
    first = next(blocks)
    return arrow_response(first.schema, _after(first, blocks))


def _stream_of(
    dataset_id: str, results: ResultSet, offset: int, limit: int, columns: Sequence[str] | None, headers: dict[str, str]
) -> Response:
    end = min(offset + limit, len(results))
    first = _rows_of(dataset_id, results, offset, min(limit, _BLOCK_ROWS), columns)
    rest = (
        _rows_of(dataset_id, results, start, min(end - start, _BLOCK_ROWS), columns)
        for start in range(offset + _BLOCK_ROWS, end, _BLOCK_ROWS)
    )
    counts = {"X-Row-Count": str(len(results))}
    return arrow_response(first.schema, _after(first, rest), {**headers, **counts})


def _after(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _rows_of(
    dataset_id: str,
    results: ResultSet,
    offset: int,
    limit: int,
    columns: Sequence[str] | None,
    at: Sequence[int] | None = None,
) -> pa.Table:
    """Return rows in which ``file_path`` is the path within the source, so that no folder of the server is told."""
    names = results.columns if columns is None else list(dict.fromkeys(columns))
    needed = {_PATH if name == _FILE_PATH else "media_id" if name == _URL else name for name in names}
    table = results.rows(offset, limit, sorted(needed)) if at is None else results.rows_at(at, sorted(needed))
    ids = table["media_id"].to_pylist() if _URL in names else []
    urls = pa.array([f"/api/v1/dataset/{dataset_id}/media/{each}/file" for each in ids], pa.string())
    columns_of = {name: urls if name == _URL else table[_PATH if name == _FILE_PATH else name] for name in names}
    return pa.table(columns_of)


def _etag(*parts: object) -> str:
    return f'"{hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'
