import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { root } from "#host";
import { get } from "../api/http";
import type { DatasetStatus, VqlElement } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { count } from "../lib/format";
import { filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { datasetPage } from "../parts/DatasetPage";
import { openExport } from "../parts/ExportDialog";
import type { MediaItem } from "../parts/Inspector";
import { Prompt } from "../parts/Prompt";
import { Pending, useResource } from "../parts/Resource";
import { labelNames, tagNames } from "../parts/SelectionBar";
import { StateBar } from "../parts/StateBar";
import { Thumb } from "../parts/Thumb";
import { navigate, pathOf, query, setQuery } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { type ActionName, change } from "../state/edits";
import { readRows } from "../state/rows";
import { t } from "../texts";

const LEVELS = 5;
const MOST_PREVIEWS = 9;

interface Cluster {
  cluster_id: string;
  n_images: number;
  n_frames: number;
  name?: string | null;
  previews: { media_id: string; file_name: string; width: number | null }[];
}
interface ClusterPage {
  clusters: Cluster[];
  total_pages: number;
  current_page: number;
}
/** A cluster into which the page went: its id and its name. */
interface Step {
  level: number;
  id: string;
  name: string;
}

export default datasetPage(Clusters);

/** The clusters of a level, or those within a cluster of the next coarser level. */
function Clusters({ dataset: of }: { dataset: DatasetStatus }) {
  const address = query.value;
  const steps = parseSteps(address.get("in"));
  const inside = steps.at(-1);
  const level = inside ? inside.level - 1 : Math.min(Number(address.get("level") ?? LEVELS - 1), LEVELS - 1);
  const pageNumber = Number(address.get("page") ?? 0);
  useOpenClusterOf(of, address.get("of"));
  const vql: VqlElement[] = inside ? [{ cluster: { op: "is", value: inside.id } }] : [];
  const page = useResource<ClusterPage>(
    (signal) => {
      const wanted = { entity_type: "IMAGES", threshold: level, page_number: pageNumber, vql: filterText(vql) };
      return get(`/explore/${of.id}`, wanted, signal);
    },
    [of.id, level, inside?.id, pageNumber],
  );
  const focus = useSignal(0);
  const clusters = page.value?.clusters ?? [];
  const into = (cluster: Cluster | undefined): void => {
    if (!cluster) return;
    if (level === 0) navigate(pathOf(addressOf(of), "pictures", null, imagesQuery(cluster.cluster_id)));
    else
      setQuery({
        in: JSON.stringify([...steps, { level, id: cluster.cluster_id, name: nameOf(cluster) }]),
        page: null,
      });
    focus.value = 0;
  };
  const out = (): void => setQuery({ in: steps.length > 1 ? JSON.stringify(steps.slice(0, -1)) : null, page: null });
  const move = (by: number): void => {
    focus.value = Math.min(Math.max(0, focus.peek() + by), Math.max(0, clusters.length - 1));
    root.querySelector<HTMLElement>(`[data-cluster="${focus.value}"]`)?.focus();
  };
  const columns = (): number => {
    const [first, ...rest] = [...root.querySelectorAll<HTMLElement>("[data-cluster]")];
    const next = rest.findIndex((each) => each.offsetTop !== first?.offsetTop);
    return next < 0 ? 1 : next + 1;
  };
  useKeys("clusters", {
    left: () => move(-1),
    right: () => move(1),
    up: () => move(-columns()),
    down: () => move(columns()),
    into: () => into(clusters[focus.peek()]),
    out,
    level: (pressed) => setQuery({ level: pressed, in: null, page: null }),
    tag: () => clusters[focus.peek()] && askTag(of, clusters[focus.peek()]!),
    label: () => clusters[focus.peek()] && askLabel(of, clusters[focus.peek()]!),
    basket: () =>
      clusters[focus.peek()] && void act(of, clusters[focus.peek()]!, "basket_add", {}, t.edits.basketAdded),
    export: () => {
      const cluster = clusters[focus.peek()];
      if (cluster) openExport(of, { vql: [{ cluster: { op: "is", value: cluster.cluster_id } }] }, cluster.n_images);
    },
  });
  return (
    <div class="page">
      <StateBar dataset={of} />
      <header class="page-head">
        <h1>{t.navigation.clusters}</h1>
        <label class="inline">
          {t.clusters.level}
          <select
            value={String(level)}
            onChange={(event) => setQuery({ level: event.currentTarget.value, in: null, page: null })}
          >
            {t.clusters.levels.map((words, index) => (
              <option key={words} value={String(index)}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </header>
      <nav aria-label={t.clusters.path} class="breadcrumb">
        <button type="button" class="button quiet" onClick={() => setQuery({ in: null, page: null })}>
          {t.clusters.all}
        </button>
        {steps.map((step, index) => (
          <button
            key={step.id}
            type="button"
            class="button quiet"
            aria-current={index === steps.length - 1 ? "true" : undefined}
            onClick={() => setQuery({ in: JSON.stringify(steps.slice(0, index + 1)), page: null })}
          >
            › {step.name}
          </button>
        ))}
      </nav>
      {!page.value ? (
        <Pending of={page} />
      ) : (
        <>
          {clusters.length === 0 && <p class="empty">{t.clusters.none}</p>}
          <ul class="cards">
            {clusters.map((cluster, index) => (
              <li key={cluster.cluster_id}>
                <Card
                  dataset={of}
                  cluster={cluster}
                  index={index}
                  isFocused={index === focus.value}
                  onOpen={() => into(cluster)}
                />
              </li>
            ))}
          </ul>
          {page.value.total_pages > 1 && (
            <p class="queue-actions">
              <Button onClick={() => setQuery({ page: String(Math.max(0, pageNumber - 1)) })}>
                {t.clusters.previous}
              </Button>
              {t.clusters.pages(pageNumber + 1, page.value.total_pages)}
              <Button onClick={() => setQuery({ page: String(Math.min(pageNumber + 1, page.value!.total_pages - 1)) })}>
                {t.clusters.next}
              </Button>
            </p>
          )}
        </>
      )}
    </div>
  );
}

function parseSteps(text: string | null): Step[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found)
      ? (found as Step[]).filter((each) => typeof each.id === "string" && each.level > 0)
      : [];
  } catch {
    return [];
  }
}

const imagesQuery = (clusterId: string): string =>
  new URLSearchParams({ f: filterText([{ cluster: { op: "is", value: clusterId } }])! }).toString();
/** Whether a cluster is that of the media without an embedding, number 0: their files could not be read. */
const isOfUnread = (cluster: Cluster): boolean => cluster.cluster_id.endsWith("00000000");
const nameOf = (cluster: Cluster): string => cluster.name ?? t.clusters.size(cluster.n_images);

/** Open the clusters of an image, where the address names one. */
function useOpenClusterOf(of: DatasetStatus, mediaId: string | null): void {
  useEffect(() => {
    if (!mediaId) return;
    void get<MediaItem>(`/dataset/${of.id}/media/${mediaId}`).then((item) => {
      const steps = [4, 3, 2, 1].map((level) => ({ level, id: item.cluster_ids[level] ?? "", name: String(level) }));
      setQuery({ of: null, in: JSON.stringify(steps.filter((step) => step.id)) }, { replace: true });
    });
  }, [of.id, mediaId]);
}

interface CardProps {
  dataset: DatasetStatus;
  cluster: Cluster;
  index: number;
  isFocused: boolean;
  onOpen: () => void;
}

function Card({ dataset: of, cluster, index, isFocused, onOpen }: CardProps) {
  return (
    <article class="card">
      <button type="button" class="card-open" data-cluster={index} tabIndex={isFocused ? 0 : -1} onClick={onOpen}>
        <span class="cluster-images" aria-hidden="true">
          {cluster.previews.slice(0, MOST_PREVIEWS).map((each) => (
            <Thumb
              key={each.media_id}
              datasetId={of.id}
              row={{
                ...each,
                image_filename: each.file_name,
                v: null,
              }}
              why={isOfUnread(cluster) && each.width === null ? t.pictures.notDecoded : null}
              size={128}
            />
          ))}
        </span>
        <strong>{nameOf(cluster)}</strong>
        <span class="hint">{count(cluster.n_images)}</span>
      </button>
      <a href={pathOf(addressOf(of), "pictures", null, imagesQuery(cluster.cluster_id))}>{t.clusters.images}</a>
    </article>
  );
}

async function act(
  of: DatasetStatus,
  cluster: Cluster,
  action: ActionName,
  args: Record<string, unknown>,
  words: (n: number) => string,
): Promise<void> {
  const { info } = await readRows(
    of.id,
    { vql: [{ cluster: { op: "is", value: cluster.cluster_id } }] },
    ["media_id"],
    1,
  );
  const wanted = { datasetId: of.id, action, on: { rid: info.rid }, args, words, generation: info.generation };
  await change(wanted).catch(() => {});
}

function askTag(of: DatasetStatus, cluster: Cluster): void {
  openDialog(() => (
    <Prompt
      title={t.actions.tagPrompt(cluster.n_images)}
      label={t.actions.tagName}
      offers={tagNames(of.id)}
      submit={t.actions.tag}
      onSubmit={(tag) => void act(of, cluster, "tag", { tag }, t.edits.tagged(tag))}
    />
  ));
}

function askLabel(of: DatasetStatus, cluster: Cluster): void {
  openDialog(() => (
    <Prompt
      title={t.actions.labelPrompt(cluster.n_images)}
      label={t.actions.labelName}
      offers={labelNames(of.id)}
      submit={t.actions.label}
      onSubmit={(text) => {
        const labels = text
          .split(",")
          .map((part) => part.trim())
          .filter(Boolean);
        void act(of, cluster, "set_labels", { labels }, t.edits.labelled(labels.join(", ")));
      }}
    />
  ));
}
