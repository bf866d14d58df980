import { useSignal } from "@preact/signals";
import { Image } from "#host";
import type { Row } from "../api/types";
import { time } from "../lib/format";
import { boxesOf } from "../state/boxes";
import { showsBoxes } from "../state/preferences";
import { t } from "../texts";
import { copies } from "../texts/copies";
import { wordsOfIssues } from "./faults";
import { thumbnail, whyNotShown } from "./thumbnail";

interface Props {
  datasetId: string;
  row: Row;
  size: number;
  fills: boolean;
  /** Whether the image is asked for; not while the grid flies past. */
  loads: boolean;
  /** Whether it is asked for before the others on the screen. */
  isFirst: boolean;
}

/** Return the name of an image for screen readers: caption or file name, what kind of copy it is, labels, issues. */
export function nameOf(row: Row): string {
  const issues = (row.issues ?? []).map((issue) => t.issueNames[issue.issue_type] ?? issue.issue_type);
  return [
    row.caption || row.image_filename,
    ...(row.copy ? [copies.badge(row.copy)] : []),
    ...(row.labels ?? []),
    ...issues,
    ...(row.in_basket ? [t.actions.inBasket] : []),
  ].join(", ");
}

/** An image of the grid, with its labels and issues. */
export function Tile({ datasetId, row, size, fills, loads, isFirst }: Props) {
  const present = thumbnail(datasetId, row.media_id, row.v, size);
  // Which address was shown, or could not be: another one is waited for.
  const last = useSignal<{ source: string; reason: string | null }>({ source: "", reason: null });
  const issues = row.issues ?? [];
  const fault = wordsOfIssues(issues.map((issue) => issue.issue_type));
  const reason = fault ?? (last.value.source === present ? last.value.reason : null);
  const state = reason !== null ? "failed" : last.value.source === present ? "shown" : "waiting";
  const source = loads || state !== "waiting" ? present : undefined;
  return (
    <div class={`tile ${fills ? "fills" : ""} ${state}`}>
      {source && state !== "failed" && (
        <Image
          src={source}
          alt=""
          decoding="async"
          fetchpriority={isFirst ? "high" : "auto"}
          draggable={false}
          onLoad={() => {
            last.value = { source: present, reason: null };
          }}
          onError={() => {
            void whyNotShown(present).then(({ words }) => {
              last.value = { source: present, reason: words };
            });
          }}
        />
      )}
      {state !== "shown" && (
        <span class="tile-name">
          {reason !== null && <b>{reason}</b>}
          {row.image_filename}
        </span>
      )}
      {showsBoxes.value && state === "shown" && row.width !== null && <Boxes row={row} fills={fills} />}
      <span class="tile-marks" aria-hidden="true">
        {row.copy && <span class="mark copy">{copies.badge(row.copy)}</span>}
        {typeof row.frame_timestamp === "number" && <span class="mark">{time(row.frame_timestamp)}</span>}
        {(row.labels ?? []).slice(0, 2).map((label) => (
          <span key={label} class="mark label">
            {label}
          </span>
        ))}
        {row.in_basket && <span class="mark basket">{t.actions.basket}</span>}
        {(row.tags ?? []).slice(0, 2).map((tag) => (
          <span key={tag} class="mark tag">
            {tag}
          </span>
        ))}
        {issues.slice(0, 2).map((issue) => (
          <span key={issue.issue_type} class="mark issue">
            {t.issueNames[issue.issue_type] ?? issue.issue_type}
          </span>
        ))}
      </span>
    </div>
  );
}

/** The bounding boxes of an image, over it. */
function Boxes({ row, fills }: { row: Row; fills: boolean }) {
  return (
    <svg
      class="boxes"
      viewBox={`0 0 ${row.width} ${row.height}`}
      preserveAspectRatio={fills ? "xMidYMid slice" : "xMidYMid meet"}
      aria-hidden="true"
    >
      {boxesOf(row).map((box) => (
        <rect key={box.media_id} x={box.bbox[0]} y={box.bbox[1]} width={box.bbox[2]} height={box.bbox[3]} />
      ))}
    </svg>
  );
}
