import { get } from "../api/http";
import type { DatasetStatus, StateCounts } from "../api/types";
import { count } from "../lib/format";
import { t } from "../texts";
import { Pending, useResource } from "./Resource";
import { Sparkline } from "./Sparkline";

const MOST_LABELS = 12;

interface Course {
  name: string;
  values: number[];
}

/** How the numbers of images, issues and labels changed from snapshot to snapshot. */
export function Trends({ dataset: of, version }: { dataset: DatasetStatus; version: string }) {
  const points = useResource<StateCounts[]>((signal) => get(`/dataset/${of.id}/trends`, {}, signal), [of.id, version]);
  if (!points.value) return <Pending of={points} />;
  const courses = coursesOf(points.value);
  const columns = t.history.trendColumns;
  return (
    <div class="table-box" role="region" tabIndex={0} aria-label={t.history.trendTable}>
      <table class="trends">
        <thead>
          <tr>
            <th scope="col">{columns.what}</th>
            <td />
            <th scope="col">{columns.first}</th>
            <th scope="col">{columns.now}</th>
            <th scope="col">{columns.change}</th>
          </tr>
        </thead>
        <tbody>
          {courses.map(({ name, values }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>
                <Sparkline values={values} />
              </td>
              <td class="number">{count(values[0] ?? 0)}</td>
              <td class="number">{count(values.at(-1) ?? 0)}</td>
              <td class="number">{signed((values.at(-1) ?? 0) - (values[0] ?? 0))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Return the courses of the counts: images, then issues that there are or were, then the labels that changed most. */
function coursesOf(points: readonly StateCounts[]): Course[] {
  const course = (name: string, read: (point: StateCounts) => number): Course => ({ name, values: points.map(read) });
  const last = points.at(-1);
  const issues = Object.keys(last?.issues ?? {}).map((type) =>
    course(t.issueNames[type] ?? type, (point) => point.issues[type] ?? 0),
  );
  const names = [...new Set(points.flatMap((point) => Object.keys(point.labels)))];
  const labels = names
    .map((label) => course(t.history.label(label), (point) => point.labels[label] ?? 0))
    .sort((a, b) => spread(b) - spread(a));
  return [
    course(t.history.imagesOf, (point) => point.n_images),
    ...issues.filter(({ values }) => values.some((value) => value > 0)),
    ...labels.slice(0, MOST_LABELS).filter((each) => spread(each) > 0),
  ];
}

const spread = ({ values }: Course): number => Math.max(...values) - Math.min(...values);
const signed = (value: number): string => (value > 0 ? `+${count(value)}` : value < 0 ? `−${count(-value)}` : "0");
