import type { ValueHistogram } from "../api/types";
import { number } from "../lib/format";
import { t } from "../texts";

const WIDTH = 600;
const HEIGHT = 120;

/** The numbers of images by a measured value, with the limit. */
export function Histogram({ histogram, limit }: { histogram: ValueHistogram; limit: number | null }) {
  const { edges, counts } = histogram;
  const first = edges[0] ?? 0;
  const last = edges.at(-1) ?? 1;
  const most = Math.max(1, ...counts);
  const x = (value: number): number => (WIDTH * (value - first)) / (last - first || 1);
  const isBeyond = (low: number, high: number): boolean =>
    limit !== null && (histogram.above ? (low + high) / 2 >= limit : (low + high) / 2 <= limit);
  return (
    <svg
      class="histogram"
      viewBox={`0 0 ${WIDTH} ${HEIGHT + 20}`}
      role="img"
      aria-label={t.issues.histogram(histogram.meaning)}
    >
      {counts.map((n, index) => {
        const [low, high] = [edges[index] ?? 0, edges[index + 1] ?? 0];
        const height = (HEIGHT * n) / most;
        return (
          <rect
            key={low}
            class={isBeyond(low, high) ? "beyond" : ""}
            x={x(low)}
            y={HEIGHT - height}
            width={Math.max(1, x(high) - x(low) - 1)}
            height={height}
          />
        );
      })}
      {limit !== null && limit >= first && limit <= last && <line x1={x(limit)} x2={x(limit)} y1={0} y2={HEIGHT} />}
      <text x={0} y={HEIGHT + 15}>
        {number(first)}
      </text>
      <text x={WIDTH} y={HEIGHT + 15} text-anchor="end">
        {number(last)}
      </text>
    </svg>
  );
}
