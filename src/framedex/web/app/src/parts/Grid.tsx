import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { mayTakeFocus, root } from "#host";
import type { Row } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { isFocusFree } from "../lib/focus";
import { VirtualScroll } from "../lib/virtual";
import { wantsFocus } from "../state/pictures";
import type { Results } from "../state/results";
import type { Selection } from "../state/selection";
import { t } from "../texts";
import { nameOf, Tile } from "./Tile";

/** The number of screens a second beyond which images are not asked for. */
const FLING = 3;
const SETTLE_MS = 80;

interface Props {
  results: Results;
  selection: Selection;
  /** The position of the row that has the focus. */
  focus: Signal<number>;
  size: number;
  fills: boolean;
  name: string;
  onOpen: (row: Row, position: number) => void;
}

/** A grid of all rows of some results; only those in view are elements. */
export function Grid({ results, selection, focus, size, fills, name, onOpen }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const scroll = useMemo(() => new VirtualScroll(), []);
  const box = useSignal({ width: 0, height: 0 });
  const moved = useSignal(0);
  const isFlying = useSignal(false);
  // Rows beyond the edge are asked for once somebody scrolls; until then they may never be seen.
  const hasScrolled = useRef(false);
  const last = useRef({ y: 0, at: 0, timer: 0 });
  const count = results.count;
  const columns = Math.max(1, Math.floor(box.value.width / (size + 8)));
  const tile = columns > 0 ? Math.floor(box.value.width / columns) : size;
  const rowCount = Math.ceil(count / columns);
  const anchor = useRef({ columns, focus: focus.peek() });

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      box.value = { width: element.clientWidth, height: element.clientHeight };
    });
    observer.observe(element);
    box.value = { width: element.clientWidth, height: element.clientHeight };
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !box.value.height) return;
    const first = Math.round(scroll.y / tile) * anchor.current.columns;
    let top = scroll.resize(rowCount * tile, box.value.height);
    if (anchor.current.columns !== columns) top = scroll.moveTo(Math.floor(first / columns) * tile);
    anchor.current.columns = columns;
    element.scrollTop = top;
    moved.value++;
  }, [rowCount, columns, tile, box.value.height]);

  const onScroll = (): void => {
    const element = scroller.current;
    if (!element) return;
    const next = scroll.scrolled(element.scrollTop);
    if (next !== null) element.scrollTop = next;
    const now = performance.now();
    const speed = Math.abs(scroll.y - last.current.y) / Math.max(1, now - last.current.at) / (box.value.height || 1);
    if (scroll.y !== last.current.y) hasScrolled.current = true;
    last.current.y = scroll.y;
    last.current.at = now;
    isFlying.value = speed * 1000 > FLING && speed * 1000 < 1e4;
    clearTimeout(last.current.timer);
    last.current.timer = window.setTimeout(() => {
      isFlying.value = false;
    }, SETTLE_MS);
    moved.value++;
  };

  const show = (position: number): void => {
    const element = scroller.current;
    if (!element) return;
    const top = Math.floor(position / columns) * tile;
    let y = scroll.y;
    if (top < y) y = top;
    if (top + tile > y + box.value.height) y = top + tile - box.value.height;
    if (y !== scroll.y) element.scrollTop = scroll.moveTo(y);
    moved.value++;
  };

  const move = (position: number, extend = false): void => {
    const to = Math.min(Math.max(0, position), count - 1);
    if (count === 0) return;
    if (extend) {
      const [from, end] = [Math.min(focus.peek(), to), Math.max(focus.peek(), to)];
      void results.rows(from, end).then((rows) => selection.add(rows.map((row) => row.media_id)));
    }
    focus.value = to;
    show(to);
    requestAnimationFrame(() => focusCell(scroller.current, to));
  };

  const page = Math.max(1, Math.floor(box.value.height / tile)) * columns;
  const step = (by: number, extend = false) => move(focus.peek() + by, extend);
  useKeys("grid", {
    left: () => step(-1),
    right: () => step(1),
    up: () => focus.peek() >= columns && step(-columns),
    down: () => focus.peek() + columns < count && step(columns),
    "row.start": () => move(focus.peek() - (focus.peek() % columns)),
    "row.end": () => move(focus.peek() - (focus.peek() % columns) + columns - 1),
    start: () => move(0),
    end: () => move(count - 1),
    "page.up": () => step(-page),
    "page.down": () => step(page),
    select: () => toggle(focus.peek()),
    "extend.left": () => step(-1, true),
    "extend.right": () => step(1, true),
    "extend.up": () => step(-columns, true),
    "extend.down": () => step(columns, true),
    "select.all": () => selection.all(),
    open: () => open(focus.peek()),
  });

  const toggle = (position: number): void => {
    void results.rows(position, position).then(([row]) => row && selection.toggle(row.media_id));
  };
  const open = (position: number): void => {
    void results.rows(position, position).then(([row]) => row && onOpen(row, position));
  };
  const onClick = (event: MouseEvent, position: number): void => {
    if (event.shiftKey) move(position, true);
    else {
      move(position);
      if (event.ctrlKey || event.metaKey) toggle(position);
    }
  };

  // Whoever comes back from an image goes on where they are in the list.
  useEffect(() => {
    if (!wantsFocus.peek() || !box.value.height || count === 0) return;
    wantsFocus.value = false;
    requestAnimationFrame(() => focusCell(scroller.current, focus.peek()));
  }, [box.value.height, count]);

  useEffect(() => {
    const shown = () => show(focus.value);
    const stop = focus.subscribe(() => queueMicrotask(shown));
    return stop;
  }, [columns, tile, count]);

  // The element with the focus stays, wherever the scroller is.
  const focusRow = Math.floor(focus.value / columns);
  moved.value; // read, so that each step of the scroller draws again
  const first = Math.max(0, Math.floor(scroll.y / tile) - 1);
  const end = Math.min(rowCount, Math.ceil((scroll.y + box.value.height) / tile) + 1);
  const rows: number[] = [];
  for (let row = first; row < end; row++) rows.push(row);
  const isInView = (row: number): boolean => row * tile < scroll.y + box.value.height && (row + 1) * tile > scroll.y;
  if (rowCount > 0 && (focusRow < first || focusRow >= end) && focusRow < rowCount) rows.push(focusRow);

  return (
    <div class="grid-scroller" ref={scroller} onScroll={onScroll} tabIndex={-1}>
      <div
        role="grid"
        aria-label={name}
        aria-rowcount={rowCount}
        aria-colcount={columns}
        aria-multiselectable="true"
        aria-busy={results.isLoading.value}
        class="grid-content"
        style={{ height: `${scroll.height}px` }}
      >
        {rows.map((row) => (
          <div
            key={row}
            role="row"
            aria-rowindex={row + 1}
            class="grid-row"
            style={{ transform: `translateY(${scroll.place(row * tile)}px)`, height: `${tile}px` }}
          >
            {Array.from({ length: Math.min(columns, count - row * columns) }, (_, column) => {
              const position = row * columns + column;
              const item = results.row(position);
              const isSelected = item !== undefined && selection.has(item.media_id);
              return (
                <div
                  key={column}
                  role="gridcell"
                  aria-colindex={column + 1}
                  aria-selected={isSelected}
                  aria-label={item ? cellName(item, isSelected) : t.loading}
                  data-position={position}
                  tabIndex={position === focus.value ? 0 : -1}
                  class={`cell ${item?.pending ? "pending" : ""}`}
                  style={{ width: `${tile}px`, height: `${tile}px` }}
                  onClick={(event) => onClick(event, position)}
                  onDblClick={() => open(position)}
                >
                  {item ? (
                    <Tile
                      datasetId={results.datasetId}
                      row={item}
                      size={tile}
                      fills={fills}
                      loads={!isFlying.value && (hasScrolled.current || isInView(row))}
                      isFirst={position === focus.value}
                    />
                  ) : (
                    <div class="tile waiting" />
                  )}
                  <span class="check" aria-hidden="true">
                    {isSelected ? "✓" : ""}
                  </span>
                </div>
              );
            })}
          </div>
        ))}
      </div>
    </div>
  );
}

function cellName(row: Row, isSelected: boolean): string {
  const parts = [nameOf(row)];
  if (isSelected) parts.push(t.pictures.selectedWord);
  if (row.pending) parts.push(t.pictures.pending);
  return parts.join(", ");
}

/** Give the focus to the cell at a position, unless it has gone elsewhere meanwhile, for example to the search. */
export function focusCell(scroller: HTMLElement | null, position: number): void {
  const present = root.activeElement;
  if (isFocusFree() ? !mayTakeFocus() : !scroller?.contains(present) && !present?.contains(scroller)) return;
  scroller?.querySelector<HTMLElement>(`[data-position="${position}"]`)?.focus({ preventScroll: true });
}
