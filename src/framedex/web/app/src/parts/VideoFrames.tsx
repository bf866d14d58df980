import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { root, Video } from "#host";
import { address, get } from "../api/http";
import type { DatasetStatus, DuplicatePage, Row, VqlElement } from "../api/types";
import { time } from "../lib/format";
import { readRows, rowsOfIds } from "../state/rows";
import { t } from "../texts";
import { Button } from "./Button";
import type { MediaItem } from "./Inspector";
import { useResource } from "./Resource";
import { THUMB_COLUMNS, Thumb } from "./Thumb";

/** The frames that are shown before and after the present one. */
const AROUND = 12;
const MOST_FRAMES = 20_000;
/** A scene is a run of frames of one cluster of this level. */
const SCENE = "cluster_1";
const COLUMNS = [...THUMB_COLUMNS, "video_id", "video_name", "frame_timestamp", SCENE];
/** How many groups of duplicates are looked through, and how many other videos of one are shown. */
const MOST_GROUPS = 500;
const MOST_COPIES = 3;
/** How long a kept frame is shown at least and at most, when they are played. */
const LEAST_MS = 120;
const MOST_MS = 500;

/** The kept frames of the video of a media item, in the order of time, and where one is among them. */
export interface Frames {
  rows: readonly Row[];
  /** The position of the present frame; -1 for an image. */
  index: number;
  /** The id of the media item that says how the video is damaged; null for an intact one. */
  damageId: string | null;
  isPlaying: Signal<boolean>;
  /** Whether the file itself is shown. */
  showsFile: Signal<boolean>;
  /** Go some frames on. */
  step: (by: number) => void;
  /** Go to the start of the next scene, or to that of the present one or the one before. */
  scene: (by: 1 | -1) => void;
  play: () => void;
}

/** Read the kept frames of the video that an item is a frame of; `show` goes to a frame. */
export function useFrames(of: DatasetStatus, item: MediaItem | null, show: (mediaId: string) => void): Frames {
  const isPlaying = useSignal(false);
  const showsFile = useSignal(false);
  const known = useRef<readonly Row[]>([]);
  const isFrame = item !== null && item.frame_timestamp !== null;
  const isKnown = known.current.some((row) => row.media_id === item?.media_id);
  const found = useResource<readonly Row[]>(
    async (signal) => {
      if (!item || !isFrame) return [];
      if (isKnown) return known.current;
      const [row] = await rowsOfIds(of.id, [item.media_id], ["media_id", "video_id"]);
      return readVideo(of, String(row?.video_id), signal);
    },
    [of.id, item?.media_id],
  );
  known.current = isFrame ? (found.value ?? []) : known.current;
  const all = isFrame ? known.current : [];
  const rows = all.filter(isOfTime);
  const damageId = all.find((row) => !isOfTime(row))?.media_id ?? null;
  const index = rows.findIndex((row) => row.media_id === item?.media_id);
  const goTo = (position: number): void => {
    const row = rows[position];
    if (row) show(row.media_id);
  };
  const starts = (position: number): boolean =>
    position === 0 || rows[position]?.[SCENE] !== rows[position - 1]?.[SCENE];
  const scene = (by: 1 | -1): void => {
    let position = index + by;
    while (position > 0 && position < rows.length && !starts(position)) position += by;
    goTo(position);
  };
  const next = rows[index + 1];
  useEffect(() => {
    if (!isPlaying.value || index < 0) return;
    if (!next) {
      isPlaying.value = false;
      return;
    }
    const seconds = Number(next.frame_timestamp) - Number(rows[index]?.frame_timestamp);
    const timer = setTimeout(() => show(next.media_id), Math.min(MOST_MS, Math.max(LEAST_MS, seconds * 1_000)));
    return () => clearTimeout(timer);
  }, [isPlaying.value, index, next?.media_id]);
  const play = (): void => {
    const video = root.querySelector("video");
    if (video) void (video.paused ? video.play().catch(() => {}) : video.pause());
    else isPlaying.value = rows.length > 0 && !isPlaying.peek();
  };
  return { rows, index, damageId, isPlaying, showsFile, step: (by) => goTo(index + by), scene, play };
}

/** Whether a row of a video is a frame; another one says how the video is damaged. */
const isOfTime = (row: Row): boolean => row.frame_timestamp !== null;

/** How a video is damaged. */
function Damage({ datasetId, mediaId }: { datasetId: string; mediaId: string }) {
  const item = useResource((signal) => get<MediaItem>(`/dataset/${datasetId}/media/${mediaId}`, {}, signal), [mediaId]);
  return item.value?.error ? <p class="problem">{t.videos.damaged(item.value.error)}</p> : null;
}

/** The strip of the kept frames around the present one, with their times. */
export function Strip({
  dataset: of,
  frames,
  show,
}: {
  dataset: DatasetStatus;
  frames: Frames;
  show: (id: string) => void;
}) {
  const { rows, index, isPlaying, showsFile } = frames;
  if (index < 0) return null;
  const present = rows[index]!;
  return (
    <section class="strip" aria-label={t.videos.frames}>
      <p class="strip-head">
        <span role="status">
          {t.videos.frame(index + 1, rows.length)} · {time(Number(present.frame_timestamp))}
        </span>
        <Button hint="Space" pressed={isPlaying.value} onClick={frames.play}>
          {isPlaying.value ? t.videos.stop : t.videos.play}
        </Button>
        <Button
          pressed={showsFile.value}
          onClick={() => {
            isPlaying.value = false;
            showsFile.value = !showsFile.peek();
          }}
        >
          {t.videos.file}
        </Button>
      </p>
      {frames.damageId && <Damage datasetId={of.id} mediaId={frames.damageId} />}
      <FrameList datasetId={of.id} rows={rows} index={index} show={show} />
    </section>
  );
}

interface FrameListProps {
  datasetId: string;
  rows: readonly Row[];
  /** The position of the frame in the middle. */
  index: number;
  show: (mediaId: string) => void;
}

/** Frames of a video around one of them, which is in the middle. */
function FrameList({ datasetId, rows, index, show }: FrameListProps) {
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const present = list.current?.querySelector<HTMLElement>("[aria-current]");
    const box = list.current;
    if (present && box) box.scrollLeft = present.offsetLeft - (box.clientWidth - present.offsetWidth) / 2;
  }, [index, rows.length]);
  const first = Math.max(0, index - AROUND);
  return (
    <ol ref={list}>
      {rows.slice(first, index + AROUND + 1).map((row, place) => (
        <li key={row.media_id}>
          <button
            type="button"
            class={row[SCENE] === rows[first + place - 1]?.[SCENE] ? "frame" : "frame starts"}
            aria-current={first + place === index ? "true" : undefined}
            onClick={() => show(row.media_id)}
          >
            <Thumb datasetId={datasetId} row={row} size={96} />
            {time(Number(row.frame_timestamp))}
          </button>
        </li>
      ))}
    </ol>
  );
}

interface CopiesProps {
  dataset: DatasetStatus;
  frames: Frames;
  show: (mediaId: string) => void;
}

/** The strips of videos that are duplicates of the present one, each at the frame that is most like the present frame. */
export function VideoCopies({ dataset: of, frames, show }: CopiesProps) {
  const present = frames.rows[frames.index];
  const videoId = present ? String(present.video_id) : null;
  const copies = useResource<readonly Copy[]>(
    async (signal) => {
      if (videoId === null || of.n_videos < 2) return [];
      const group = (await groupsOfVideos(of)).find((each) => each.media_ids.includes(videoId));
      const others = (group?.media_ids ?? []).filter((id) => id !== videoId).slice(0, MOST_COPIES);
      return Promise.all(others.map((id) => readCopy(of, id, signal)));
    },
    [of.id, videoId],
  );
  const alike = useResource<ReadonlyMap<string, string>>(
    async (signal) => {
      if (!present || frames.isPlaying.peek()) return new Map();
      const found = (copies.value ?? []).map((copy) => alikeFrame(of, copy.videoId, present.media_id, signal));
      return new Map((await Promise.all(found)).filter((pair) => pair !== null));
    },
    [present?.media_id, copies.value, frames.isPlaying.value],
  );
  if (!present || !copies.value?.length) return null;
  return (
    <section class="strip" aria-label={t.videos.copies}>
      {copies.value.map((copy) => {
        const index = copy.rows.findIndex((row) => row.media_id === alike.value?.get(copy.videoId));
        const row = copy.rows[index];
        return (
          <div key={copy.videoId}>
            <p class="strip-head">{t.videos.copy(copy.name, row ? time(Number(row.frame_timestamp)) : null)}</p>
            {row && <FrameList datasetId={of.id} rows={copy.rows} index={index} show={show} />}
          </div>
        );
      })}
    </section>
  );
}

/** The groups of a state of a dataset, which are found once for all of its videos. */
let known: { state: string; groups: Promise<DuplicatePage["groups"]> } | null = null;

function groupsOfVideos(of: DatasetStatus): Promise<DuplicatePage["groups"]> {
  const state = `${of.id} ${of.updated_at}`;
  if (known?.state !== state) {
    const wanted = { entity_type: "VIDEOS", limit: MOST_GROUPS };
    const groups = get<DuplicatePage>(`/dataset/${of.id}/duplicates`, wanted).then((page) => page.groups);
    known = { state, groups };
    groups.catch(() => {
      known = null;
    });
  }
  return known.groups;
}

interface Copy {
  videoId: string;
  name: string;
  rows: readonly Row[];
}

async function readCopy(of: DatasetStatus, videoId: string, signal: AbortSignal): Promise<Copy> {
  const rows = (await readVideo(of, videoId, signal)).filter(isOfTime);
  return { videoId, name: String(rows[0]?.video_name ?? ""), rows };
}

/** Return the kept frames of a video in the order of time, and the row that says how it is damaged. */
async function readVideo(of: DatasetStatus, videoId: string, signal: AbortSignal): Promise<Row[]> {
  const query = { vql: ofVideo(videoId), sort: { column: "frame_timestamp" } };
  return (await readRows(of.id, query, COLUMNS, MOST_FRAMES, signal)).rows;
}

/** Return a video and its frame that is most like another one. */
async function alikeFrame(
  of: DatasetStatus,
  videoId: string,
  frameId: string,
  signal: AbortSignal,
): Promise<readonly [string, string] | null> {
  const search = { similar: frameId, limit: 1 };
  const { rows } = await readRows(of.id, { vql: ofVideo(videoId), search }, ["media_id"], 1, signal);
  return rows[0] ? [videoId, rows[0].media_id] : null;
}

const ofVideo = (videoId: string): VqlElement[] => [{ cluster: { op: "is", value: videoId } }];

/** The video itself, from the time of a frame on, where the browser can decode it. */
export function VideoFile({ dataset: of, item }: { dataset: DatasetStatus; item: MediaItem }) {
  const failed = useSignal(false);
  const source = address(`/dataset/${of.id}/media/${item.media_id}/video`);
  useEffect(() => {
    failed.value = false;
  }, [source]);
  if (failed.value) return <p class="stage problem">{t.videos.notDecoded}</p>;
  return (
    <div class="stage">
      <Video
        src={source}
        controls
        preload="metadata"
        aria-label={item.file_name}
        onLoadedMetadata={({ currentTarget }) => {
          if (item.frame_timestamp !== null) currentTarget.currentTime = item.frame_timestamp;
        }}
        onError={() => {
          failed.value = true;
        }}
      />
    </div>
  );
}
