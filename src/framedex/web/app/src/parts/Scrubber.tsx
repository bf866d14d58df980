import { useRef } from "preact/hooks";
import { get } from "../api/http";
import { date, number } from "../lib/format";
import type { Results } from "../state/results";
import { t } from "../texts";
import { useResource } from "./Resource";

interface Quantiles {
  column: string;
  positions: number[];
  values: unknown[];
}
const TICKS = 8;

/** A rail beside the grid that tells what the order is about at each place, and jumps there. */
export function Scrubber({ results, onJump }: { results: Results; onJump: (position: number) => void }) {
  const rail = useRef<HTMLDivElement>(null);
  const info = results.info.value;
  const quantiles = useResource<Quantiles | null>(
    (signal) =>
      info && info.count > 1
        ? get<Quantiles>(`/dataset/${results.datasetId}/results/${info.rid}/quantiles`, { n: TICKS + 1 }, signal)
        : Promise.resolve(null),
    [info?.rid],
  );
  const jump = (event: PointerEvent): void => {
    const box = rail.current?.getBoundingClientRect();
    if (!box || !info) return;
    const share = Math.min(1, Math.max(0, (event.clientY - box.top) / box.height));
    onJump(Math.round(share * (info.count - 1)));
  };
  return (
    <div
      ref={rail}
      class="scrubber"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        jump(event);
      }}
      onPointerMove={(event) => event.buttons > 0 && jump(event)}
    >
      {quantiles.value?.values.map((value, index) => (
        <span key={index} style={{ top: `${(100 * index) / TICKS}%` }}>
          {words(value)}
        </span>
      ))}
    </div>
  );
}

function words(value: unknown): string {
  if (value === null || value === undefined) return t.inspector.none;
  if (typeof value === "number") return number(value, 2);
  const text = String(value);
  if (/^\d{4}-\d\d-\d\dT/.test(text)) return date(text);
  return text.split("/").at(-1)?.slice(0, 12) ?? "";
}
