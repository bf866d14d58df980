/** The course of some values as a small line, from 0 to the largest; the numbers stand beside it. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const most = Math.max(1, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const path = values.map((value, index) => `${step * index},${24 - (22 * value) / most}`);
  return (
    <svg class="sparkline" viewBox="0 0 100 24" aria-hidden="true">
      <polyline points={path.join(" ")} />
    </svg>
  );
}
