import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/http";
import { number, size } from "../lib/format";
import { editVersion } from "../state/edits";
import { t } from "../texts";

export interface MediaItem {
  media_id: string;
  file_name: string;
  original_uri: string;
  width: number | null;
  height: number | null;
  file_size: number | null;
  caption: string | null;
  labels: string[] | null;
  user_tags: string[] | null;
  issues: { issue_type: string; confidence: number }[];
  field_values: { field_name: string; field_type: string; value: unknown }[];
  cluster_ids: string[];
  error: string | null;
  fault: string | null;
  gaps: string | null;
  /** The values that are shown black and white; null where values are shown as they are. */
  shown_from: number | null;
  shown_to: number | null;
  /** The number of pages or frames in the file, of which the first is shown; null for one. */
  n_pages: number | null;
  /** The time within the video in seconds; null for an image. */
  frame_timestamp: number | null;
}

/** The details of a media item. */
export function Inspector({ datasetId, mediaId }: { datasetId: string; mediaId: string | undefined }) {
  const item = useSignal<MediaItem | null>(null);
  const version = editVersion.value;
  useEffect(() => {
    if (!mediaId) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get<MediaItem>(`/dataset/${datasetId}/media/${mediaId}`, {}, abort.signal)
        .then((found) => {
          item.value = found;
        })
        .catch(() => {
          if (!abort.signal.aborted) item.value = null;
        });
    }, 100);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [datasetId, mediaId, version]);
  const found = item.value;
  return (
    <aside class="inspector" aria-label={t.inspector.name}>
      <h2>{t.inspector.name}</h2>
      {found ? <Details item={found} /> : <p class="hint">{t.inspector.nothing}</p>}
    </aside>
  );
}

const value = (of: number): string => of.toLocaleString(undefined, { maximumSignificantDigits: 6 });

/** The facts about a media item, as a list of terms. */
export function Details({ item }: { item: MediaItem }) {
  const list = (values: string[] | null): string => (values?.length ? values.join(", ") : t.inspector.none);
  return (
    <dl class="details">
      <dt>{t.inspector.file}</dt>
      <dd class="path">{item.original_uri}</dd>
      {(item.error ?? item.gaps) && (
        <dd class="problem">
          {[t.pictures.faults[item.fault ?? ""], item.error ?? item.gaps].filter(Boolean).join(": ")}
        </dd>
      )}
      <dt>{t.inspector.pixels}</dt>
      <dd>
        {[
          item.width !== null && item.height !== null && `${item.width} × ${item.height}`,
          item.file_size !== null && size(item.file_size),
          item.shown_from !== null &&
            item.shown_to !== null &&
            t.inspector.shown(value(item.shown_from), value(item.shown_to)),
          item.n_pages !== null && t.inspector.pages(item.n_pages),
        ]
          .filter(Boolean)
          .join(", ")}
      </dd>
      <dt>{t.inspector.labels}</dt>
      <dd>{list(item.labels)}</dd>
      <dt>{t.inspector.tags}</dt>
      <dd>{list(item.user_tags)}</dd>
      {item.caption && (
        <>
          <dt>{t.inspector.caption}</dt>
          <dd>{item.caption}</dd>
        </>
      )}
      {item.issues.length > 0 && (
        <>
          <dt>{t.inspector.issues}</dt>
          {item.issues.map((issue) => (
            <dd key={issue.issue_type}>
              {t.issueNames[issue.issue_type] ?? issue.issue_type}, {t.inspector.confidence}{" "}
              {number(issue.confidence, 2)}
            </dd>
          ))}
        </>
      )}
      {item.field_values.map((field) => (
        <>
          <dt>{field.field_name}</dt>
          <dd>{Array.isArray(field.value) ? field.value.join(", ") : String(field.value)}</dd>
        </>
      ))}
    </dl>
  );
}
