/** Names of clusters and images over the points. */

import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Image } from "#host";
import type { DatasetStatus, Entity, Row } from "../api/types";
import { query } from "../router";
import { t } from "../texts";
import { type Camera, inView, levelOf, limited, type Size, side, toScreen } from "./camera";
import type { Place } from "./index";
import { type ClusterName, type MapModel, shortName } from "./model";
import type { Motion } from "./motion";
import { type Label, placed } from "./placement";
import { type Points, toSquare } from "./points";
import type { StageProps } from "./Stage";

const MOST_NAMES = 40;
const PIXELS_OF_NAME = 24_000;
const [LEAST_NAMED, LEAST_UNNAMED] = [2, 3];
/** The least share of all points that a cluster of a level has whose name is shown: fewer names where all is in view. */
const LEAST_SHARE = [0, 0, 0.0005, 0.002, 0.006] as const;
const NAME_HEIGHT = 26;
const NAME_PADDING = 18;
const MOST_NAME_PX = 220;
const CELL_PX = 56;
const TILE_PX = 48;
const MOST_TILES = 300;
/** The most points in view for which images are shown. */
const MOST_IN_VIEW = 700;
const REST_MS = 150;
const FONT = "600 13px system-ui, sans-serif";

interface Shared {
  model: MapModel;
  camera: Signal<Camera>;
  size: Signal<Size>;
}

interface NameProps extends Shared {
  entity: Entity;
  points: Points;
  /** What names do not cover, in pixels from the left and the upper edge. */
  taken: Signal<readonly Label[]>;
  motion: Motion;
  onLook: (x: number, y: number) => void;
}

interface PlacedName extends ClusterName {
  level: number;
  words: string;
  left: number;
  top: number;
  width: number;
}

const ruler = document.createElement("canvas").getContext("2d");

function widthOf(words: string): number {
  if (ruler) ruler.font = FONT;
  return Math.min((ruler?.measureText(words).width ?? words.length * 8) + NAME_PADDING, MOST_NAME_PX);
}

/** The names of the clusters in view: a list of buttons that zoom to them. */
export function ClusterNames({ entity, model, camera, size, points, taken, motion, onLook }: NameProps) {
  const chosen = query.value.get("level");
  const level = chosen !== null && /^[0-4]$/.test(chosen) ? Number(chosen) : levelOf(camera.value.zoom);
  useEffect(() => void model.readNames(level).catch(() => {}), [model, level, points]);
  const widths = useMemo(() => new Map<string, number>(), []);
  const names = model.names.value;
  // Where the largest clusters of a level are elsewhere, those of the next coarser one that has names here are shown.
  let shown: PlacedName[] = [];
  for (let tried = level; tried <= 4 && shown.length === 0; tried++) {
    shown = shownNames(names.get(tried) ?? [], tried, points, camera.value, size.value, widths, taken.value, entity);
  }
  const goTo = (name: PlacedName): void => {
    const [x, y] = toSquare(points.bounds, name.x, name.y);
    motion.to(limited({ x, y, zoom: Math.max(camera.peek().zoom + 1, (5 - name.level) * 1.25) }));
  };
  return (
    <ul class="map-names" aria-label={t.map.inView} data-level={level}>
      {shown.map((name) => (
        <li key={name.cluster_id} style={{ transform: `translate(${name.left}px, ${name.top}px)` }}>
          <button
            type="button"
            class={`map-name ${name.name ? "" : "unnamed"}`}
            style={{ maxWidth: `${MOST_NAME_PX}px` }}
            aria-label={name.name ? t.map.zoomTo(name.name, name.size, entity) : t.map.zoomToUnnamed(name.size, entity)}
            title={name.name ? `${name.name} · ${t.map.size(name.size, entity)}` : undefined}
            onClick={() => goTo(name)}
            onFocus={() => onLook(...toSquare(points.bounds, name.x, name.y))}
          >
            {name.words}
          </button>
        </li>
      ))}
    </ul>
  );
}

function shownNames(
  names: readonly ClusterName[],
  level: number,
  points: Points,
  camera: Camera,
  size: Size,
  widths: Map<string, number>,
  taken: readonly Label[],
  entity: Entity,
): PlacedName[] {
  const least = points.count * (LEAST_SHARE[level] ?? 0);
  const some = names.filter((each) => each.size >= (each.name ? LEAST_NAMED : LEAST_UNNAMED));
  const large = some.filter((each) => each.size >= least);
  const worth = large.length ? large : some;
  const labels = worth.map((each): PlacedName => {
    const words = each.name ? shortName(each.name) : t.map.size(each.size, entity);
    const width = widths.get(words) ?? widthOf(words);
    widths.set(words, width);
    const [left, top] = toScreen(camera, size, ...toSquare(points.bounds, each.x, each.y));
    return { ...each, level, words, left, top, width };
  });
  const boxes = labels.map(({ left, top, width }) => ({ x: left, y: top, width, height: NAME_HEIGHT }));
  const most = Math.min(MOST_NAMES, Math.ceil((size.width * size.height) / PIXELS_OF_NAME));
  return placed(boxes, size, most, taken).map((index) => labels[index]!);
}

interface TileProps extends Shared {
  dataset: DatasetStatus;
  thumbnail: StageProps["thumbnail"];
}

/** Images over their points where few points are in view: one for each cell. */
export function Tiles({ model, camera, size, dataset: of, thumbnail }: TileProps) {
  const tiles = useSignal<readonly (Place & { row: Row })[]>([]);
  const turn = useRef(0);
  useSignalEffect(() => {
    const [present, view] = [camera.value, size.value];
    model.indexed.value;
    const own = ++turn.current;
    if (!view.width) return;
    setTimeout(async () => {
      if (own !== turn.current) return;
      const cell = CELL_PX / side(present, view);
      const asked = { box: inView(present, view), cell, mostPoints: MOST_IN_VIEW, mostTiles: MOST_TILES };
      const places = await model.tiles(asked);
      const rows = places.length ? await model.rowsAt(places.map((each) => each.position)).catch(() => null) : null;
      if (own !== turn.current) return;
      tiles.value = places.flatMap((each) => {
        const row = rows?.get(each.position);
        return row ? [{ ...each, row }] : [];
      });
    }, REST_MS);
  });
  return (
    <div class="map-tiles" aria-hidden="true">
      {tiles.value.map(({ position, x, y, row }) => {
        const [left, top] = toScreen(camera.value, size.value, x, y);
        const at = `translate(${(left - TILE_PX / 2).toFixed(1)}px, ${(top - TILE_PX / 2).toFixed(1)}px)`;
        return (
          <Image
            key={position}
            src={thumbnail(of.id, row.media_id, row.v, TILE_PX)}
            alt=""
            decoding="async"
            style={{ transform: at }}
            onError={(event) => {
              event.currentTarget.hidden = true;
            }}
          />
        );
      })}
    </div>
  );
}
