import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Image, root } from "#host";
import { get } from "../api/http";
import type { DatasetStatus, Row } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { number } from "../lib/format";
import { Button } from "../parts/Button";
import { datasetPage } from "../parts/DatasetPage";
import { Details, type MediaItem } from "../parts/Inspector";
import { Prompt } from "../parts/Prompt";
import { Pending, useResource } from "../parts/Resource";
import { show } from "../parts/SearchBox";
import { askLabels, askTag, toggleBasket } from "../parts/SelectionBar";
import { file, type Reason, thumbnail, whyNotShown } from "../parts/thumbnail";
import { type Frames, Strip, useFrames, VideoCopies, VideoFile } from "../parts/VideoFrames";
import { navigate, pathOf, query, route } from "../router";
import type { Box } from "../state/boxes";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { changeRows, editVersion } from "../state/edits";
import { focus, openQuery, queryOf, resultsOf, selection, wantsFocus } from "../state/pictures";
import { showsBoxes } from "../state/preferences";
import { readRows } from "../state/rows";
import { t } from "../texts";

const ZOOM_STEP = 1.25;
const MOST_ZOOM = 16;
const PAN_PX = 80;
/** Formats that browsers show; others are asked for as JPEG. */
const SHOWN = /\.(jpe?g|jfif|png|gif|webp|avif|bmp)$/i;

interface View {
  zoom: number;
  x: number;
  y: number;
}
/** The size that an image itself says, for media whose size the dataset does not know. */
interface NaturalSize {
  mediaId: string;
  width: number;
  height: number;
}
interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

export default datasetPage(Viewer);

/** One image at full size, and the way to those before and after it in the list that it came from. */
function Viewer({ dataset: of }: { dataset: DatasetStatus }) {
  const mediaId = route.value.rest ?? "";
  const results = resultsOf(of.id);
  // The image whose place in the list is known: before that, none is before or after it.
  const placed = useSignal("");
  const address = query.value.toString();
  useEffect(() => {
    void openQuery(results, queryOf(query.peek())).then(async () => {
      const position = await results.position(mediaId).catch(() => null);
      if (position !== null) focus.value = position;
      placed.value = position === null ? "" : mediaId;
    });
  }, [mediaId, address]);
  const item = useResource<MediaItem>(
    (signal) => get(`/dataset/${of.id}/media/${mediaId}`, {}, signal),
    [of.id, mediaId, editVersion.value],
  );
  useEffect(() => {
    wantsFocus.value = true; // of the grid, to which this page leads back
  }, []);
  const name = addressOf(of);
  const back = (): void => {
    const from = new URLSearchParams(query.peek());
    const page = from.get("from") === "map" ? "map" : "pictures";
    from.delete("from");
    navigate(pathOf(name, page, null, from.toString()));
  };
  const go = (by: number): void => {
    const to = focus.peek() + by;
    if (placed.peek() !== mediaId || to < 0 || to >= results.count) return;
    void results.rows(to, to).then(([row]) => {
      if (!row) return;
      focus.value = to;
      placed.value = row.media_id;
      navigate(pathOf(name, "m", row.media_id, query.peek().toString()), { replace: true });
    });
  };
  const view = useSignal<View>({ zoom: 1, x: 0, y: 0 });
  const drawn = useSignal<Area | null>(null);
  useEffect(() => {
    view.value = { zoom: 1, x: 0, y: 0 };
    drawn.value = null;
  }, [mediaId]);
  const natural = useSignal<NaturalSize | null>(null);
  const known = withSize(item.value, natural.value);
  const boxes = useBoxes(of, item.value);
  const box = useSignal(-1);
  const showFrame = (id: string): void => navigate(pathOf(name, "m", id, query.peek().toString()), { replace: true });
  const frames = useFrames(of, item.value, showFrame);
  useViewerKeys({ of, item: known, view, drawn, boxes, box, go, back, frames });
  const position = placed.value === mediaId && t.viewer.position(focus.value + 1, results.count);
  return (
    <div class="viewer">
      <header class="viewer-head">
        <Button hint="Esc" kind="quiet" onClick={back}>
          ← {query.value.get("from") === "map" ? t.viewer.backToMap : t.viewer.back}
        </Button>
        <h1>{item.value?.file_name ?? ""}</h1>
        <span class="grow" role="status">
          {position}
        </span>
        <Button hint="T" onClick={() => askTag(results, [mediaId])}>
          {t.actions.tag}
        </Button>
        <Button hint="L" onClick={() => item.value && askLabels(results, [mediaId], item.value.labels ?? [])}>
          {t.actions.label}
        </Button>
        <Button hint="X" onClick={() => void toggleBasket(results, [mediaId])}>
          {t.actions.basket}
        </Button>
        <Button hint="S" onClick={() => show({ like: mediaId })}>
          {t.actions.similar}
        </Button>
      </header>
      <div class="viewer-body">
        {item.error ? (
          <Pending of={item} />
        ) : frames.showsFile.value && item.value?.frame_timestamp != null ? (
          <VideoFile dataset={of} item={item.value} />
        ) : (
          <Stage dataset={of} item={known} natural={natural} view={view} drawn={drawn} boxes={boxes} box={box} />
        )}
        <aside class="inspector" aria-label={t.inspector.name}>
          <h2>{t.inspector.name}</h2>
          {known && <Details item={known} />}
          {boxes.length > 0 && <BoxList boxes={boxes} box={box} />}
        </aside>
      </div>
      <Strip dataset={of} frames={frames} show={showFrame} />
      <VideoCopies dataset={of} frames={frames} show={showFrame} />
    </div>
  );
}

/** Return an item with the size that its image says, where the dataset does not know it. */
function withSize(item: MediaItem | null, natural: NaturalSize | null): MediaItem | null {
  if (!item || natural?.mediaId !== item.media_id || (item.width !== null && item.height !== null)) return item;
  return { ...item, width: natural.width, height: natural.height };
}

/** The bounding boxes of an image: the objects of files with its name, and of those its own. */
function useBoxes(of: DatasetStatus, item: MediaItem | null): Box[] {
  const found = useResource<Box[]>(
    async (signal) => {
      if (of.n_objects <= 0 || !item) return [];
      const vql = [{ file_name: { op: "is", value: item.file_name } }];
      const columns = ["media_id", "parent_id", "bbox", "label", "confidence"];
      const { rows } = await readRows(of.id, { vql, entity_type: "OBJECTS" }, columns, 500, signal);
      return (rows as unknown as Box[]).filter((each) => each.parent_id === item.media_id);
    },
    [of.id, item?.media_id],
  );
  return found.value ?? [];
}

interface KeyProps {
  of: DatasetStatus;
  item: MediaItem | null;
  view: Signal<View>;
  drawn: Signal<Area | null>;
  boxes: readonly Box[];
  box: Signal<number>;
  go: (by: number) => void;
  back: () => void;
  frames: Frames;
}

/** Return the zoom at which a pixel of an image is one of the display; twice its fitted size if that is larger. */
function fullSize(item: MediaItem | null): number {
  const fitted = root.querySelector<HTMLElement>(".canvas")?.offsetWidth ?? 0;
  const zoom = item?.width && fitted ? item.width / fitted / (globalThis.devicePixelRatio || 1) : 0;
  return zoom > 1 ? Math.min(MOST_ZOOM, zoom) : 2;
}

function useViewerKeys({ of, item, view, drawn, boxes, box, go, back, frames }: KeyProps): void {
  const results = resultsOf(of.id);
  const zoom = (factor: number): void => {
    view.value = { ...view.peek(), zoom: Math.min(MOST_ZOOM, Math.max(1, view.peek().zoom * factor)) };
  };
  const pan = (x: number, y: number): void => {
    const area = drawn.peek();
    if (area && item?.width && item.height) {
      const next = { ...area, width: area.width + x / 8, height: area.height + y / 8 };
      drawn.value = within(next, item.width, item.height);
    } else view.value = { ...view.peek(), x: view.peek().x - x, y: view.peek().y - y };
  };
  const shift = (x: number, y: number, otherwise: () => void): void => {
    const area = drawn.peek();
    if (!area || !item?.width || !item.height) otherwise();
    else
      drawn.value = within(
        { ...area, x: area.x + (x * item.width) / 40, y: area.y + (y * item.height) / 40 },
        item.width,
        item.height,
      );
  };
  const draw = (): void => {
    if (!item?.width || !item.height) return;
    drawn.value = drawn.peek()
      ? null
      : { x: item.width / 4, y: item.height / 4, width: item.width / 2, height: item.height / 2 };
  };
  const search = (): void => {
    const area = drawn.peek();
    if (area && item)
      show({ like: item.media_id, region: [area.x, area.y, area.width, area.height].map(Math.round).join(",") });
  };
  const turn = (by: number): void => {
    if (boxes.length === 0) return;
    showsBoxes.value = true;
    box.value = (box.peek() + by + boxes.length) % boxes.length;
  };
  const caption = (): void => {
    if (!item) return;
    openDialog(() => (
      <Prompt
        title={t.actions.caption}
        label={t.actions.caption}
        initial={item.caption ?? ""}
        submit={t.actions.apply}
        onSubmit={(text) => {
          const wanted = { action: "set_captions" as const, args: { caption: text }, words: t.edits.captioned };
          void changeRows(results, [item.media_id], wanted, (row: Row) => ({ ...row, caption: text }));
        }}
      />
    ));
  };
  useEffect(() => selection.clear(), []);
  const name = addressOf(of);
  useKeys("viewer", {
    previous: () => shift(-1, 0, () => go(-1)),
    next: () => shift(1, 0, () => go(1)),
    zoom: () => {
      view.value = { zoom: view.peek().zoom > 1 ? 1 : fullSize(item), x: 0, y: 0 };
    },
    "zoom.in": () => zoom(ZOOM_STEP),
    "zoom.out": () => zoom(1 / ZOOM_STEP),
    "pan.left": () => pan(-PAN_PX, 0),
    "pan.right": () => pan(PAN_PX, 0),
    "pan.up": () => pan(0, -PAN_PX),
    "pan.down": () => pan(0, PAN_PX),
    boxes: () => {
      showsBoxes.value = !showsBoxes.value;
    },
    "box.previous": () => turn(-1),
    "box.next": () => turn(1),
    draw,
    "frame.previous": () => frames.step(-1),
    "frame.next": () => frames.step(1),
    "scene.previous": () => frames.scene(-1),
    "scene.next": () => frames.scene(1),
    play: frames.play,
    tag: () => item && askTag(results, [item.media_id]),
    label: () => item && askLabels(results, [item.media_id], item.labels ?? []),
    caption,
    basket: () => item && void toggleBasket(results, [item.media_id]),
    similar: () => (drawn.peek() ? search() : item && show({ like: item.media_id })),
    cluster: () => item && navigate(pathOf(name, "clusters", null, `of=${item.media_id}`)),
    copies: () => item && navigate(pathOf(name, "duplicates", null, `of=${item.media_id}`)),
    close: () => {
      if (drawn.peek()) drawn.value = null;
      else back();
    },
  });
  useKeys("grid", { up: () => shift(0, -1, () => {}), down: () => shift(0, 1, () => {}), open: search });
}

/** Return an area moved and cut so that it is within an image and at least a few pixels large. */
function within(area: Area, width: number, height: number): Area {
  const w = Math.min(Math.max(8, area.width), width);
  const h = Math.min(Math.max(8, area.height), height);
  return {
    x: Math.min(Math.max(0, area.x), width - w),
    y: Math.min(Math.max(0, area.y), height - h),
    width: w,
    height: h,
  };
}

interface StageProps {
  dataset: DatasetStatus;
  item: MediaItem | null;
  natural: Signal<NaturalSize | null>;
  view: Signal<View>;
  drawn: Signal<Area | null>;
  boxes: readonly Box[];
  box: Signal<number>;
}

function Stage({ dataset: of, item, natural, view, drawn, boxes, box }: StageProps) {
  const stage = useRef<HTMLDivElement>(null);
  const failed = useSignal<{ source: string; reason: Reason } | null>(null);
  const isLoaded = useSignal("");
  const start = useRef<{ x: number; y: number; view: View } | null>(null);
  const source = useMemo(
    () => (item ? file(of.id, item.media_id) + (SHOWN.test(item.file_name) ? "" : "?format=jpeg") : ""),
    [item?.media_id],
  );
  if (!item) return <div class="stage" aria-busy="true" />;
  const reason = failed.value?.source === source ? failed.value.reason : null;
  if (item.error !== null || reason) {
    return <p class="stage problem">{item.error ?? (reason && wordsOf(reason, item))}</p>;
  }
  // Until the image has said its size, it is fitted into the usual one.
  const [width, height] = item.width !== null && item.height !== null ? [item.width, item.height] : [4, 3];
  const { zoom, x, y } = view.value;
  const onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const next = Math.min(MOST_ZOOM, Math.max(1, zoom * (event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP)));
    view.value = next === 1 ? { zoom: 1, x: 0, y: 0 } : { ...view.value, zoom: next };
  };
  return (
    <div
      ref={stage}
      class="stage"
      onWheel={onWheel}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        start.current = { x: event.clientX, y: event.clientY, view: view.value };
      }}
      onPointerMove={(event) => {
        const from = start.current;
        if (from && event.buttons > 0) {
          view.value = {
            ...from.view,
            x: from.view.x + event.clientX - from.x,
            y: from.view.y + event.clientY - from.y,
          };
        }
      }}
    >
      <div class="canvas" style={{ "--ratio": width / height, transform: `translate(${x}px, ${y}px) scale(${zoom})` }}>
        {isLoaded.value !== source && <Image src={thumbnail(of.id, item.media_id, null, 512)} alt="" />}
        <Image
          src={source}
          alt={item.caption ?? `${item.file_name}${item.labels?.length ? `, ${item.labels.join(", ")}` : ""}`}
          draggable={false}
          onLoad={({ currentTarget }) => {
            isLoaded.value = source;
            const { naturalWidth, naturalHeight } = currentTarget;
            natural.value = { mediaId: item.media_id, width: naturalWidth, height: naturalHeight };
          }}
          onError={() => {
            void whyNotShown(source).then((reason) => {
              failed.value = { source, reason };
            });
          }}
        />
        <svg class="boxes" viewBox={`0 0 ${width} ${height}`} aria-hidden="true" preserveAspectRatio="none">
          {showsBoxes.value &&
            boxes.map((each, index) => (
              <rect
                key={each.media_id}
                class={index === box.value ? "chosen" : ""}
                x={each.bbox[0]}
                y={each.bbox[1]}
                width={each.bbox[2]}
                height={each.bbox[3]}
              />
            ))}
          {drawn.value && <rect class="drawn" {...drawn.value} />}
        </svg>
      </div>
    </div>
  );
}

/** Return why the file of an item is not shown: the path of one that is gone, else the sentence of the service. */
function wordsOf(reason: Reason, item: MediaItem): string {
  return reason.isGone ? t.pictures.missingPath(item.original_uri) : (reason.sentence ?? reason.words);
}

function BoxList({ boxes, box }: { boxes: readonly Box[]; box: Signal<number> }) {
  return (
    <section aria-labelledby="boxes">
      <h2 id="boxes">{t.pictures.boxes}</h2>
      <ol>
        {boxes.map((each, index) => (
          <li key={each.media_id}>
            <button
              type="button"
              class="facet"
              aria-pressed={index === box.value}
              onClick={() => {
                showsBoxes.value = true;
                box.value = index;
              }}
            >
              {each.label ?? t.inspector.none} {each.confidence !== null && number(each.confidence, 2)}
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
