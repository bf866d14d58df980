"""Rows of datasets, generations and source roots. Each function takes an open connection of the catalog."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from framedex.core.ids import is_id, new_id
from framedex.errors import Conflict, NotFound
from framedex.records import DatasetRecord, DatasetStatus, EmbeddingConfig
from framedex.storage.dataset_origins import changed_at, origin_columns, origin_of
from framedex.storage.generation import Generation, Summary
from framedex.storage.manifest import note_change, note_removal
from framedex.storage.row_values import reading_row
from framedex.storage.schema import datasets, generations, source_roots, uploads

# Statements that each request runs are built once: SQLAlchemy takes ten times as long for that as SQLite to run them.
_HAS_FILES = sa.exists().where(uploads.c.dataset_id == datasets.c.id, uploads.c.n_files > 0).label("has_files")
_SELECT = sa.select(datasets, _HAS_FILES, *origin_columns())
_BY_ID = _SELECT.where(datasets.c.id == sa.bindparam("key"))
_BY_NAME_OR_ID = _SELECT.where(
    sa.or_(
        datasets.c.id == sa.bindparam("key"),
        sa.and_(datasets.c.namespace == sa.bindparam("within"), datasets.c.name == sa.bindparam("key")),
    )
)
_ROOTS = "SELECT path FROM source_roots WHERE dataset_id = ? ORDER BY number"


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def insert_dataset(
    connection: sa.Connection,
    name: str,
    *,
    owned_by: str,
    namespace: str = "",
    status: DatasetStatus = DatasetStatus.INDEXING,
    source_dataset_id: str | None = None,
    creator_id: str | None = None,
) -> str:
    """Add an empty dataset and return its id.

    Args:
        connection: of the catalog.
        name: unique in the namespace.
        owned_by: the user who creates it.
        namespace: of the dataset.
        status: of the dataset.
        source_dataset_id: the dataset that it is a copy of; None for no copy.
        creator_id: the user account of the service that creates it; None for no account.

    Raises:
        Conflict: the name is in use.
    """
    dataset_id = new_id()
    try:
        connection.execute(
            datasets.insert().values(
                id=dataset_id,
                name=name,
                namespace=namespace,
                status=status,
                progress=0,
                owned_by=owned_by,
                created_at=now(),
                n_images=0,
                n_videos=0,
                n_objects=0,
                source_dataset_id=source_dataset_id,
                creator_id=creator_id,
            )
        )
    except sa.exc.IntegrityError:
        check_dataset_name_free(connection, name, namespace=namespace)
        raise
    note_change(connection, dataset_id)
    return dataset_id


def check_dataset_name_free(connection: sa.Connection, name: str, *, namespace: str = "") -> None:
    """Check that the name of a new dataset is not in use in a namespace.

    Raises:
        Conflict: another dataset has the name; the message says what the user can do.
    """
    same = (datasets.c.namespace == namespace, datasets.c.name == name)
    status = connection.execute(sa.select(datasets.c.status).where(*same)).scalar_one_or_none()
    if status is None:
        return
    if status == DatasetStatus.ERROR:
        raise Conflict(
            f"a dataset named {name!r} exists already: it is {status}, as its creation did not end. Retry its task, "
            f"delete it by delete_dataset({name!r}) or `framedex rm`, or choose another name"
        )
    raise Conflict(f"a dataset named {name!r} exists already; choose another name or delete it first")


def rename_dataset(connection: sa.Connection, dataset_id: str, name: str) -> None:
    """Rename a dataset.

    Raises:
        NotFound: the dataset does not exist.
        Conflict: another dataset of its namespace has that name.
    """
    find_dataset(connection, dataset_id)
    try:
        update_dataset(connection, dataset_id, name=name)
    except sa.exc.IntegrityError:
        raise Conflict(f"a dataset named {name!r} exists already; choose another name") from None
    note_change(connection, dataset_id)


def set_description(connection: sa.Connection, dataset_id: str, description: str) -> None:
    """Replace the description of a dataset.

    Raises:
        NotFound: the dataset does not exist.
    """
    find_dataset(connection, dataset_id)
    update_dataset(connection, dataset_id, description=description)
    note_change(connection, dataset_id)


def find_dataset(connection: sa.Connection, name_or_id: str, *, namespace: str = "") -> DatasetRecord:
    """Return the dataset with that id, or else the dataset of a namespace with that name.

    Raises:
        NotFound: no dataset has that id, and none of the namespace has that name; the message lists names of the
            namespace.
    """
    try:
        rows = connection.execute(_BY_NAME_OR_ID, {"key": name_or_id, "within": namespace}).all()
    except UnicodeEncodeError:  # undecodable bytes from the command line; no dataset has such a name
        rows = []
    if not rows:
        names = connection.execute(
            sa.select(datasets.c.name)
            .where(datasets.c.namespace == namespace)
            .order_by(datasets.c.created_at.desc())
            .limit(10)
        ).scalars()
        raise NotFound(f"no dataset {name_or_id!r}; there are: {', '.join(map(repr, names)) or 'none yet'}")
    return _record(next((row for row in rows if row.id == name_or_id), rows[0]))


class Creation(NamedTuple):
    """The namespace in which a dataset was created, and the user account of the service for which; None for none."""

    namespace: str
    creator_id: str | None


def find_with_creation(connection: sa.Connection, dataset_id: str) -> tuple[DatasetRecord, Creation]:
    """Return the dataset with an id, and its creation.

    Raises:
        NotFound: no dataset has that id; names find nothing.
    """
    row = connection.execute(_BY_ID, {"key": dataset_id}).one_or_none()
    if row is None:
        raise NotFound(f"no dataset has the id {dataset_id!r}")
    return _record(row), Creation(row.namespace, row.creator_id)


def creations(connection: sa.Connection) -> dict[str, Creation]:
    """Return the creations of the datasets of all namespaces, by their ids."""
    rows = connection.execute(sa.select(datasets.c.id, datasets.c.namespace, datasets.c.creator_id)).all()
    return {row.id: Creation(row.namespace, row.creator_id) for row in rows}


def list_datasets(connection: sa.Connection, namespace: str | None = None) -> list[DatasetRecord]:
    """Return the datasets of a namespace, newest first; with None those of all namespaces."""
    query = _SELECT.order_by(datasets.c.created_at.desc(), datasets.c.id)
    if namespace is not None:
        query = query.where(datasets.c.namespace == namespace)
    return [_record(row) for row in connection.execute(query).all()]


def list_namespaces(connection: sa.Connection) -> list[str]:
    """Return the namespaces that have datasets, sorted."""
    return list(connection.execute(sa.select(datasets.c.namespace).distinct().order_by(datasets.c.namespace)).scalars())


def namespace_of(connection: sa.Connection, dataset_id: str) -> str:
    """Return the namespace of a dataset; empty if it does not exist."""
    namespace = connection.execute(sa.select(datasets.c.namespace).where(datasets.c.id == dataset_id)).scalar()
    return namespace or ""


def dataset_names(connection: sa.Connection, namespace: str | None = None) -> dict[str, str]:
    """Return the names of datasets by id, newest first, also of rows with damaged values beside a valid id.

    Args:
        connection: of the catalog.
        namespace: of the datasets; None for all namespaces.
    """
    of_namespace = "" if namespace is None else " WHERE namespace = ?"
    query = f"SELECT CAST(id AS BLOB), CAST(name AS BLOB) FROM datasets{of_namespace} ORDER BY created_at DESC, id"
    rows = connection.exec_driver_sql(query, () if namespace is None else (namespace,)).all()
    texts = [[(each or b"").decode(errors="replace") for each in row] for row in rows]
    return {dataset_id: name or dataset_id for dataset_id, name in texts if is_id(dataset_id)}


def update_dataset(connection: sa.Connection, dataset_id: str, **values: Any) -> None:
    """Set columns of a dataset's row."""
    connection.execute(datasets.update().where(datasets.c.id == dataset_id).values(**values))


def update_dataset_progress(connection: sa.Connection, dataset_id: str, percent: int) -> None:
    """Store the progress of a dataset's indexing, in percent."""
    connection.execute(
        datasets.update()
        .where(datasets.c.id == dataset_id, datasets.c.status == DatasetStatus.INDEXING)
        .values(progress=percent)
    )


def mark_broken(connection: sa.Connection, dataset_id: str) -> None:
    """Set the status of a dataset with an unfinished task by its head: ERROR if it has no head."""
    update = datasets.update().where(datasets.c.id == dataset_id)
    if (generation := head(connection, dataset_id)) is None:
        connection.execute(update.values(status=DatasetStatus.ERROR))
        discard_early(connection, dataset_id)
        return
    under_way = datasets.c.status.in_((DatasetStatus.INDEXING, DatasetStatus.READ_ONLY))
    connection.execute(update.where(under_way).values(status=generation.status, progress=100))


def remove_dataset(connection: sa.Connection, dataset_id: str) -> None:
    """Delete a dataset's row, its generations and its source roots."""
    connection.execute(datasets.delete().where(datasets.c.id == dataset_id))
    note_removal(connection, dataset_id)


def new_generation(
    dataset_id: str, *, tables: dict[str, int], n_images: int, config: EmbeddingConfig, summary: Summary
) -> Generation:
    """Return a generation of a dataset that is not stored yet; *tables* are versions by table name."""
    return Generation(
        id=new_id(),
        dataset_id=dataset_id,
        tables=tables,
        n_images=n_images,
        created_at=now(),
        summary=summary,
        embedding_config=config,
    )


def commit_generation(
    connection: sa.Connection,
    dataset_id: str,
    *,
    tables: dict[str, int],
    n_images: int,
    config: EmbeddingConfig,
    summary: Summary,
) -> Generation:
    """Make *tables* (versions by table name) the dataset's head, as :func:`put_head` does."""
    generation = new_generation(dataset_id, tables=tables, n_images=n_images, config=config, summary=summary)
    put_head(connection, generation)
    return generation


def put_head(connection: sa.Connection, generation: Generation) -> None:
    """Make a new generation the head of its dataset, with the status and counts that follow.

    This is the only commit point: readers see the previous head until the surrounding transaction ends.
    """
    assert generation.embedding_config is not None, "a new generation has a configuration"
    config = generation.embedding_config.model_dump(mode="json")
    connection.execute(generations.insert().values(**generation.model_dump() | {"embedding_config": config}))
    update_dataset(
        connection,
        generation.dataset_id,
        head=generation.id,
        status=generation.status,
        progress=100,
        n_images=generation.n_still_images,
        n_videos=generation.n_videos,
        n_objects=generation.n_objects,
        embedding_config=config,
    )
    note_change(connection, generation.dataset_id)


def commit_early(
    connection: sa.Connection,
    dataset_id: str,
    *,
    tables: dict[str, int],
    n_images: int,
    summary: Summary,
    roots: Sequence[str],
) -> None:
    """Show the rows that the creation of a dataset has read so far, until the creation commits or fails.

    The dataset still has no head, so nothing can change it.
    """
    values = {"dataset_id": dataset_id, "tables": tables, "n_images": n_images, "summary": summary.model_dump()}
    connection.execute(generations.insert().values(id=new_id(), created_at=now(), **values))
    if not get_roots(connection, dataset_id):
        put_roots(connection, dataset_id, roots)


def early(connection: sa.Connection, dataset_id: str) -> Generation | None:
    """Return the rows that the creation of a dataset has read so far; None before the first, or if there is a head."""
    query = (
        generations.select()
        .join(datasets, datasets.c.id == generations.c.dataset_id)
        .where(datasets.c.id == dataset_id, datasets.c.head.is_(None))
        .order_by(generations.c.created_at.desc())
    )
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else generation_of_row(row)


def discard_early(connection: sa.Connection, dataset_id: str) -> None:
    """Forget the rows that the creation of a dataset without a head has read."""
    if early(connection, dataset_id) is None:
        return
    connection.execute(generations.delete().where(generations.c.dataset_id == dataset_id))
    put_roots(connection, dataset_id, ())


def head(connection: sa.Connection, dataset_id: str) -> Generation | None:
    """Return the generation that readers see; None before the first commit."""
    row = connection.execute(
        generations.select().join(datasets, datasets.c.head == generations.c.id).where(datasets.c.id == dataset_id)
    ).one_or_none()
    return None if row is None else generation_of_row(row)


def list_heads(connection: sa.Connection) -> dict[str, str | None]:
    """Return the id of each dataset's head, None before the first commit, by the id of the dataset."""
    return {row.id: row.head for row in connection.execute(sa.select(datasets.c.id, datasets.c.head)).all()}


def find_generation(connection: sa.Connection, dataset_id: str, generation_id: str) -> Generation:
    """Return a generation of a dataset.

    Raises:
        NotFound: the dataset has no such generation any more.
    """
    query = generations.select().where(generations.c.dataset_id == dataset_id, generations.c.id == generation_id)
    if (row := connection.execute(query).one_or_none()) is None:
        raise NotFound(f"the state {generation_id} of this dataset was freed")
    return generation_of_row(row)


def generation_of_row(row: Any) -> Generation:
    """Return the generation in a row of its table; raise WrongValue if a value does not fit."""
    with reading_row("generations", row.id):
        return Generation.model_validate(dict(row._mapping))


def embedding_config(connection: sa.Connection, dataset_id: str) -> EmbeddingConfig | None:
    """Return the encoder settings of a dataset's index; None before the first indexing."""
    value = connection.execute(
        sa.select(datasets.c.embedding_config).where(datasets.c.id == dataset_id)
    ).scalar_one_or_none()
    with reading_row("datasets", dataset_id):
        return None if value is None else EmbeddingConfig.model_validate(value)


def put_roots(connection: sa.Connection, dataset_id: str, roots: Sequence[str]) -> None:
    """Store a dataset's source roots, by number: the folders that the paths of its media are relative to."""
    connection.execute(source_roots.delete().where(source_roots.c.dataset_id == dataset_id))
    for number, root in enumerate(roots):
        connection.execute(source_roots.insert().values(dataset_id=dataset_id, number=number, path=os.fsencode(root)))
    note_change(connection, dataset_id)


def get_roots(connection: sa.Connection, dataset_id: str) -> list[str]:
    """Return a dataset's source roots, by number."""
    rows = connection.exec_driver_sql(_ROOTS, (dataset_id,)).scalars()
    with reading_row("source_roots", dataset_id):
        return [os.fsdecode(path) for path in rows]


def _record(row: Any) -> DatasetRecord:
    with reading_row("datasets", row.id):
        if not is_id(row.id):
            raise ValueError("id is not the id of a dataset")
        origin = origin_of(row)
        return DatasetRecord(
            id=row.id,
            display_name=row.name,
            status=_former_status(row),
            status_new=DatasetStatus(row.status),
            progress=row.progress,
            owned_by=row.owned_by,
            created_at=row.created_at,
            n_images=row.n_images,
            n_videos=row.n_videos,
            n_objects=row.n_objects,
            description=row.description,
            created_by=row.owned_by,
            updated_at=changed_at(row),
            source_type=origin.type,
            source_uri=origin.uri,
            source_dataset_id=row.source_dataset_id,
        )


def _former_status(row: Any) -> str:
    """Return the status of a dataset in the interface's older field."""
    if row.status != DatasetStatus.DRAFT:
        return str(row.status)
    return "UPLOADING" if row.has_files else "NEW"
