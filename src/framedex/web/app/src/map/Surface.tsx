/** The canvas of the map, what lies over it, and what pointer and keys do. */

import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Image, root } from "#host";
import type { Row } from "../api/types";
import { bind, useKeys } from "../keys/dispatcher";
import { query, setQuery } from "../router";
import { say } from "../state/notices";
import { t } from "../texts";
import { type Camera, FITTED, limited, panned, type Size, toMap, toScreen, zoomed } from "./camera";
import { PointsCanvas } from "./gl";
import type { Place } from "./index";
import type { MapModel } from "./model";
import { Motion } from "./motion";
import { ClusterNames, Tiles } from "./overlays";
import { Painter } from "./painter";
import { colourTable, noColour } from "./palette";
import type { Label } from "./placement";
import { fromSquare, type Points, toSquare } from "./points";
import { type Point, regionOf } from "./polygon";
import type { StageProps } from "./Stage";
import { presentTheme } from "./theme";

const PAN_PX = 80;
const CLICK_PX = 4;
const REACH_PX = 16;
const HOVER_MS = 60;
const WRITE_MS = 300;
const WHEEL_STEP = 1 / 240;
const TOLERANCE_PX = 1.5;
const TIP_PX = 160;

interface Props extends StageProps {
  model: MapModel;
  points: Points;
  column: string | null;
  /** Called where the canvas cannot draw. */
  onNoGraphics: () => void;
  children: ComponentChildren;
}
/** A box that keys move, in pixels. */
interface KeyBox {
  left: number;
  top: number;
  width: number;
  height: number;
}
/** A region that is being drawn: a box of the keys, or a line of the pointer. */
type Drawing = { box: KeyBox; line: null } | { box: null; line: Point[] };

export function Surface(props: Props) {
  const { dataset: of, model, points, regions, children } = props;
  const view = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSignal<Size>({ width: 0, height: 0 });
  const camera = useSignal<Camera>(cameraOf(query.peek()));
  const motion = useMemo(() => new Motion(camera), [camera]);
  const drawing = useSignal<Drawing | null>(null);
  const found = useSignal<Found | null>(null);
  const painter = usePainter(model, canvas, view, size, camera, props.onNoGraphics);
  useAddress(camera, motion);
  useSignalEffect(() => {
    camera.value;
    painter.current?.move();
  });
  const finish = (line: readonly Point[]): void => {
    drawing.value = null;
    const corners = regionOf(line, TOLERANCE_PX);
    if (!corners) {
      say(t.map.regionSmall, "error");
      return;
    }
    const inMap = ([left, top]: Point): Point =>
      fromSquare(points.bounds, ...toMap(camera.peek(), size.peek(), left, top));
    props.onRegion(corners.map(inMap));
  };
  const look = useLook(props, size, camera, found);
  useGestures(view, { camera, size, drawing, motion, look, finish, open: () => open(props, found.peek()) });
  const toggleDrawing = (): void => {
    drawing.value = drawing.peek() ? null : { box: middleBox(size.peek()), line: null };
    if (drawing.peek()) canvas.current?.focus(); // so that Enter means the box, and no button
  };
  useMapKeys({ size, drawing, motion, finish, toggleDrawing });
  const taken = useTaken(view, model, props.column);
  const isDrawing = drawing.value !== null;
  return (
    <div
      ref={view}
      class={`map-view ${isDrawing ? "drawing" : ""}`}
      role="group"
      aria-label={t.navigation.map}
      data-x={camera.value.x.toFixed(4)}
      data-y={camera.value.y.toFixed(4)}
      data-zoom={camera.value.zoom.toFixed(2)}
    >
      <canvas
        ref={canvas}
        class="map-canvas"
        role="img"
        aria-label={t.map.name(points.count, props.entity)}
        tabIndex={0}
      />
      <Tiles {...{ model, camera, size, dataset: of, thumbnail: props.thumbnail }} />
      <Outlines {...{ regions, drawing, points, camera, size, found }} />
      <ClusterNames
        {...{ model, camera, size, points, motion, taken }}
        entity={props.entity}
        onLook={(x, y) => void look(x, y, Number.POSITIVE_INFINITY)}
      />
      {found.value && !isDrawing && <Tip found={found.value} camera={camera.value} size={size.value} {...props} />}
      <Controls size={size} motion={motion} isDrawing={isDrawing} toggleDrawing={toggleDrawing} />
      {isDrawing && (
        <p class="map-hint" role="status">
          {t.map.regionHint}
        </p>
      )}
      {children}
    </div>
  );
}

/** Return where the legend and the buttons are, which names do not cover. */
function useTaken(
  view: { current: HTMLDivElement | null },
  model: MapModel,
  column: string | null,
): Signal<readonly Label[]> {
  const taken = useSignal<readonly Label[]>([]);
  const colours = model.colours.value;
  useEffect(() => {
    const frame = view.current!;
    const measure = (): void => {
      const { left, top } = frame.getBoundingClientRect();
      taken.value = [...frame.querySelectorAll(".map-legend, .map-controls")].map((each) => {
        const box = each.getBoundingClientRect();
        const [x, y] = [box.left + box.width / 2 - left, box.top + box.height / 2 - top];
        return { x, y, width: box.width, height: box.height };
      });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(frame);
    for (const each of frame.querySelectorAll(".map-legend, .map-controls")) observer.observe(each);
    return () => observer.disconnect();
  }, [colours, column]);
  return taken;
}

function cameraOf(address: URLSearchParams): Camera {
  const [x, y, zoom] = ["x", "y", "z"].map((name) => Number(address.get(name) ?? Number.NaN));
  return limited({
    x: Number.isFinite(x) ? x! : FITTED.x,
    y: Number.isFinite(y) ? y! : FITTED.y,
    zoom: Number.isFinite(zoom) ? zoom! : FITTED.zoom,
  });
}

const written = (camera: Camera): Record<string, string | null> => {
  const isFitted = camera.zoom === FITTED.zoom && camera.x === FITTED.x && camera.y === FITTED.y;
  if (isFitted) return { x: null, y: null, z: null };
  return { x: camera.x.toFixed(4), y: camera.y.toFixed(4), z: camera.zoom.toFixed(2) };
};

/** Keep the camera and the address the same. */
function useAddress(camera: Signal<Camera>, motion: Motion): void {
  const known = useRef("");
  const names = ["x", "y", "z"] as const;
  const present = names.map((name) => query.value.get(name) ?? "").join(" ");
  useEffect(() => {
    if (known.current !== "" && known.current !== present) motion.to(cameraOf(query.peek()));
    known.current = present || "  ";
  }, [present]);
  const wanted = camera.value;
  useEffect(() => {
    const timer = setTimeout(() => {
      const next = written(camera.peek());
      const text = names.map((name) => next[name] ?? "").join(" ");
      if (text === known.current) return;
      known.current = text;
      setQuery(next, { replace: true });
    }, WRITE_MS);
    return () => clearTimeout(timer);
  }, [wanted]);
}

/** Draw the points: what has come of them, in their colours, and anew when anything changes. */
function usePainter(
  model: MapModel,
  canvas: { current: HTMLCanvasElement | null },
  view: { current: HTMLDivElement | null },
  size: Signal<Size>,
  camera: Signal<Camera>,
  onNoGraphics: () => void,
): { current: Painter | null } {
  const painter = useRef<Painter | null>(null);
  const drawn = useSignal<PointsCanvas | null>(null);
  useLayoutEffect(() => {
    const [element, frame] = [canvas.current!, view.current!];
    const made = PointsCanvas.on(element);
    if (!made) {
      onNoGraphics();
      return;
    }
    painter.current = new Painter(made, () => ({ camera: camera.peek(), size: size.peek() }));
    const measure = (): void => {
      const ratio = Math.min(devicePixelRatio || 1, 2);
      size.value = { width: frame.clientWidth, height: frame.clientHeight };
      element.width = Math.max(1, Math.round(frame.clientWidth * ratio));
      element.height = Math.max(1, Math.round(frame.clientHeight * ratio));
      painter.current?.renew();
    };
    const lost = (event: Event): void => {
      event.preventDefault();
      painter.current?.stop();
    };
    const restored = (): void => {
      made.restore();
      painter.current?.renew();
    };
    const observer = new ResizeObserver(measure);
    observer.observe(frame);
    element.addEventListener("webglcontextlost", lost);
    element.addEventListener("webglcontextrestored", restored);
    measure();
    drawn.value = made;
    return () => {
      observer.disconnect();
      painter.current?.stop();
      painter.current = null;
      drawn.value = null;
      made.release();
      element.removeEventListener("webglcontextlost", lost);
      element.removeEventListener("webglcontextrestored", restored);
    };
  }, []);
  const shown = useRef<Points | null>(null);
  useSignalEffect(() => {
    const [points, loaded] = [model.points.value, model.loaded.value];
    if (!drawn.value || !points) return;
    if (shown.current?.places !== points.places) drawn.value.setPoints(points.places, points.count);
    shown.current = points;
    painter.current?.load(loaded, points.count);
  });
  useSignalEffect(() => {
    const [colours, theme] = [model.colours.value, presentTheme.value];
    if (!drawn.value || !model.points.value) return;
    const kind = colours ? (colours.low === null ? "names" : "numbers") : "plain";
    drawn.value.setCodes(colours?.codes ?? null);
    drawn.value.setColours(
      colourTable(kind, theme),
      noColour(theme).map((value) => value / 255),
    );
    painter.current?.renew();
  });
  useSignalEffect(() => {
    const kept = model.kept.value;
    if (!drawn.value || !model.points.value) return;
    drawn.value.setKept(kept);
    painter.current?.renew();
  });
  return painter;
}

/** The point that the pointer or the focus is at, with its row once that has come. */
export interface Found extends Place {
  row: Row | null;
}
type Look = (x: number, y: number, reach: number) => Promise<void>;

/** Return a function that finds the point nearest to a place of the map. */
function useLook({ model }: Props, size: Signal<Size>, camera: Signal<Camera>, found: Signal<Found | null>): Look {
  const turn = useRef(0);
  return async (x, y, reach) => {
    const own = ++turn.current;
    const scale = Math.abs(
      toScreen(camera.peek(), size.peek(), 1, 0)[0] - toScreen(camera.peek(), size.peek(), 0, 0)[0],
    );
    const nearest = reach > 0 ? await model.nearest(x, y, Math.min(reach / scale, 1)) : null;
    if (own !== turn.current) return;
    if (!nearest || nearest.position === found.peek()?.position) {
      if (!nearest) found.value = null;
      return;
    }
    found.value = { ...nearest, row: null };
    await new Promise((resolve) => setTimeout(resolve, HOVER_MS));
    if (own !== turn.current && found.peek()?.position !== nearest.position) return;
    const rows = await model.rowsAt([nearest.position]).catch(() => null);
    const row = rows?.get(nearest.position) ?? null;
    if (found.peek()?.position === nearest.position) found.value = { ...nearest, row };
  };
}

function open({ onOpen, model }: Props, found: Found | null): void {
  if (!found) return;
  if (found.row) onOpen(found.row.media_id);
  else
    void model.rowsAt([found.position]).then((rows) => {
      const row = rows.get(found.position);
      if (row) onOpen(row.media_id);
    });
}

interface Gestures {
  camera: Signal<Camera>;
  size: Signal<Size>;
  drawing: Signal<Drawing | null>;
  motion: Motion;
  look: Look;
  finish: (line: readonly Point[]) => void;
  open: () => void;
}

/** Wheel and pinch zoom, a drag pans or draws a region, a click opens. */
function useGestures(view: { current: HTMLDivElement | null }, gestures: Gestures): void {
  const latest = useRef(gestures);
  latest.current = gestures;
  useEffect(() => {
    const element = view.current!;
    const pointers = new Map<number, Point>();
    let travelled = 0;
    let onName = false;
    const placeOf = (event: MouseEvent): Point => {
      const box = element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const isOnMap = (event: Event): boolean => event.target instanceof HTMLCanvasElement;
    // A gesture may begin on a name, which lies over the map; a click there is the name's own.
    const isOnName = (event: Event): boolean => (event.target as Element).closest(".map-names") !== null;
    const wheel = (event: WheelEvent): void => {
      const { size, motion } = latest.current;
      event.preventDefault();
      const steps = -event.deltaY * (event.deltaMode === 1 ? 16 : 1) * WHEEL_STEP * (event.ctrlKey ? 4 : 1);
      motion.now(zoomed(motion.aim, size.peek(), steps, ...placeOf(event)));
    };
    const down = (event: PointerEvent): void => {
      onName = isOnName(event);
      if (!(onName || isOnMap(event)) || event.button !== 0) return;
      if (!onName) element.setPointerCapture(event.pointerId);
      const at = placeOf(event);
      pointers.set(event.pointerId, at);
      travelled = 0;
      if (latest.current.drawing.peek()) latest.current.drawing.value = { box: null, line: [at] };
    };
    const move = (event: PointerEvent): void => {
      const { camera, size, drawing, motion, look } = latest.current;
      const at = placeOf(event);
      if (event.buttons === 0) pointers.delete(event.pointerId); // let go elsewhere
      const before = pointers.get(event.pointerId);
      if (!before) {
        const isOver = isOnMap(event) && !drawing.peek();
        void look(...toMap(camera.peek(), size.peek(), ...at), isOver ? REACH_PX : 0);
        return;
      }
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      pointers.set(event.pointerId, at);
      travelled += Math.hypot(at[0] - before[0], at[1] - before[1]);
      if (travelled < CLICK_PX && onName) return;
      element.setPointerCapture(event.pointerId); // also what began on a name, which may go away
      const line = drawing.peek()?.line;
      if (line) drawing.value = { box: null, line: [...line, at] };
      else if (other) {
        const ratio =
          Math.hypot(at[0] - other[0], at[1] - other[1]) / Math.hypot(before[0] - other[0], before[1] - other[1]);
        motion.now(zoomed(camera.peek(), size.peek(), Math.log2(ratio || 1), ...other));
      } else motion.now(panned(camera.peek(), size.peek(), at[0] - before[0], at[1] - before[1]));
    };
    const up = (event: PointerEvent): void => {
      if (!pointers.delete(event.pointerId)) return;
      const line = latest.current.drawing.peek()?.line;
      if (line) latest.current.finish(line);
      else if (travelled < CLICK_PX && !onName && event.type === "pointerup") latest.current.open();
    };
    const leave = (): void => void latest.current.look(0, 0, 0);
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("pointerdown", down);
    element.addEventListener("pointermove", move);
    element.addEventListener("pointerup", up);
    element.addEventListener("pointercancel", up);
    element.addEventListener("pointerleave", leave);
    return () => {
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("pointerdown", down);
      element.removeEventListener("pointermove", move);
      element.removeEventListener("pointerup", up);
      element.removeEventListener("pointercancel", up);
      element.removeEventListener("pointerleave", leave);
    };
  }, []);
}

type KeyParts = Pick<Gestures, "size" | "drawing" | "motion" | "finish"> & { toggleDrawing: () => void };
const BOX_STEP_PX = 24;
const LEAST_BOX_PX = 16;

function middleBox({ width, height }: Size): KeyBox {
  const [wide, high] = [width * 0.4, height * 0.4];
  return { left: (width - wide) / 2, top: (height - high) / 2, width: wide, height: high };
}

const lineOf = ({ left, top, width, height }: KeyBox): Point[] => [
  [left, top],
  [left + width, top],
  [left + width, top + height],
  [left, top + height],
];

/** The keys of the map hold wherever the focus is, but within the grid beside it. */
function useMapKeys({ size, drawing, motion, finish, toggleDrawing }: KeyParts): void {
  const move = (right: number, down: number): void => {
    const box = drawing.peek()?.box;
    if (!box) motion.to(panned(motion.aim, size.peek(), -right * PAN_PX, -down * PAN_PX));
    else {
      const [left, top] = [box.left + right * BOX_STEP_PX, box.top + down * BOX_STEP_PX];
      drawing.value = { box: { ...box, left, top }, line: null };
    }
  };
  const resize = (wider: number, taller: number): void => {
    const box = drawing.peek()?.box ?? middleBox(size.peek());
    const width = Math.max(LEAST_BOX_PX, box.width + wider * BOX_STEP_PX);
    const height = Math.max(LEAST_BOX_PX, box.height + taller * BOX_STEP_PX);
    drawing.value = { box: { ...box, width, height }, line: null };
  };
  const zoom = (steps: number): void => motion.to(zoomed(motion.aim, size.peek(), steps));
  const handlers = {
    left: () => move(-1, 0),
    right: () => move(1, 0),
    up: () => move(0, -1),
    down: () => move(0, 1),
    "zoom.in": () => zoom(0.5),
    "zoom.out": () => zoom(-0.5),
    fit: () => motion.to(FITTED),
    into: () => {
      const box = drawing.peek()?.box;
      if (box) finish(lineOf(box));
      else zoom(1);
    },
    region: toggleDrawing,
    "size.left": () => resize(-1, 0),
    "size.right": () => resize(1, 0),
    "size.up": () => resize(0, -1),
    "size.down": () => resize(0, 1),
  };
  const latest = useRef(handlers);
  latest.current = handlers;
  useLayoutEffect(() => bind("map", () => (isInPane() ? { region: latest.current.region } : latest.current)), []);
  useKeys("global", drawing.value ? { escape: toggleDrawing } : {});
}

const isInPane = (): boolean => root.activeElement?.closest(".map-pane") != null;

interface ControlProps extends Pick<Gestures, "size" | "motion"> {
  isDrawing: boolean;
  toggleDrawing: () => void;
}

function Controls({ size, motion, isDrawing, toggleDrawing }: ControlProps) {
  const zoom = (steps: number): void => motion.to(zoomed(motion.aim, size.peek(), steps));
  const control = (name: string, key: string, text: string, act: () => void, pressed?: boolean) => (
    <button
      type="button"
      class="button map-control"
      aria-label={name}
      aria-pressed={pressed}
      title={`${name} (${key})`}
      onClick={act}
    >
      <span aria-hidden="true">{text}</span>
    </button>
  );
  return (
    <div class="map-controls" role="toolbar" aria-label={t.navigation.map} aria-orientation="vertical">
      {control(t.map.zoomIn, "+", "+", () => zoom(1))}
      {control(t.map.zoomOut, "-", "−", () => zoom(-1))}
      {control(t.map.fit, "0", "⤢", () => motion.to(FITTED))}
      {control(t.map.region, "O", "⬚", toggleDrawing, isDrawing)}
    </div>
  );
}

interface OutlineProps {
  regions: readonly (readonly Point[])[];
  drawing: Signal<Drawing | null>;
  points: Points;
  camera: Signal<Camera>;
  size: Signal<Size>;
  found: Signal<Found | null>;
}

/** The regions of the filter, the one that is being drawn, and a ring around the point that was found. */
function Outlines({ regions, drawing, points, camera, size, found }: OutlineProps) {
  const { width, height } = size.value;
  const onScreen = ([x, y]: Point): Point => toScreen(camera.value, size.value, ...toSquare(points.bounds, x, y));
  const path = (corners: readonly Point[]): string =>
    corners.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const present = drawing.value;
  const ring = found.value && toScreen(camera.value, size.value, found.value.x, found.value.y);
  return (
    <svg class="map-outlines" viewBox={`0 0 ${width || 1} ${height || 1}`} aria-hidden="true">
      {regions.map((corners, index) => (
        <path key={`region ${index}`} class="map-region" d={`${path(corners.map(onScreen))}Z`} />
      ))}
      {present && <path class="map-drawing" d={path(present.line ?? lineOf(present.box)) + (present.box ? "Z" : "")} />}
      {ring && !present && <circle class="map-ring" cx={ring[0]} cy={ring[1]} r={8} />}
    </svg>
  );
}

function Tip({ found, camera, size, dataset: of, thumbnail }: Props & { found: Found; camera: Camera; size: Size }) {
  const [left, top] = toScreen(camera, size, found.x, found.y);
  const { row } = found;
  const isRight = left > size.width - TIP_PX - 24;
  const isLow = top > size.height - TIP_PX - 48;
  const style = {
    left: `${isRight ? left - TIP_PX - 14 : left + 14}px`,
    ...(isLow ? { bottom: `${size.height - top + 8}px` } : { top: `${top + 8}px` }),
  };
  return (
    <div class="map-tip" style={style} aria-hidden="true">
      {row ? (
        <>
          <Image src={thumbnail(of.id, row.media_id, row.v, 128)} alt="" />
          <span>{row.image_filename}</span>
          {(row.labels ?? []).length > 0 && <span class="hint">{(row.labels ?? []).join(", ")}</span>}
        </>
      ) : (
        <span class="map-tip-blank" />
      )}
    </div>
  );
}
