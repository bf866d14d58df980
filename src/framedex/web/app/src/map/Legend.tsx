/** What the colours of points mean: words beside each colour. */
import { useEffect } from "preact/hooks";
import type { Entity } from "../api/types";
import { count, number } from "../lib/format";
import { t } from "../texts";
import { type MapModel, SINCE, shortName } from "./model";
import { css, nameColours, noColour, otherColour, type Rgb, rampColour } from "./palette";
import { presentTheme } from "./theme";

interface Props {
  entity: Entity;
  model: MapModel;
  column: string | null;
  onFilter: (element: Record<string, unknown>) => void;
}

const BASKET = "in_basket";
const RAMP_STEPS = 12;

export function Legend({ entity, model, column, onFilter }: Props) {
  const theme = presentTheme.value;
  const colours = model.colours.value;
  const level = /^cluster_([0-4])$/.exec(column ?? "")?.[1];
  useEffect(() => {
    if (level !== undefined && colours) void model.readNames(Number(level)).catch(() => {});
  }, [level, colours]);
  if (!colours || !column) return null;
  if (colours.low !== null && colours.high !== null) return <Ramp low={colours.low} high={colours.high} />;
  const names = new Map(
    (level === undefined ? [] : (model.names.value.get(Number(level)) ?? [])).map((each) => [each.cluster_id, each]),
  );
  const hues = nameColours(theme);
  const spelled = (value: string, n: number): string => {
    if (column.startsWith(SINCE)) return (t.changes.names as Record<string, string>)[value] ?? value;
    if (column === BASKET) return value === "true" ? t.map.inBasket : t.map.notInBasket;
    if (level === undefined) return value;
    const name = names.get(value)?.name;
    return name ? shortName(name) : t.map.size(n, entity);
  };
  const elementOf = (value: string): Record<string, unknown> | null => {
    if (level !== undefined) return { cluster: { op: "is", value } };
    if (column === BASKET && value === "true") return { tags: { op: "is", value: "basket" } };
    return column === "labels" ? { labels: { op: "is", value } } : null;
  };
  return (
    <details class="map-legend" open={innerWidth > 1000}>
      <summary>{t.map.legend}</summary>
      <ul>
        {colours.names.map(([value, n], index) => {
          const element = elementOf(value);
          const words = spelled(value, n);
          const inside = (
            <>
              <Swatch colour={hues[index]!} />
              <span class="map-legend-name">{words}</span>
              {words !== t.map.size(n, entity) && <span class="number hint">{count(n)}</span>}
            </>
          );
          return (
            <li key={value}>
              {element ? (
                <button
                  type="button"
                  aria-label={t.map.legendFilter(words, n, entity)}
                  onClick={() => onFilter(element)}
                >
                  {inside}
                </button>
              ) : (
                <span class="map-legend-row">{inside}</span>
              )}
            </li>
          );
        })}
        {colours.hasOther && <Plain colour={otherColour(theme)} words={t.map.other} />}
        {colours.hasNone && (
          <Plain colour={noColour(theme)} words={column.startsWith(SINCE) ? t.map.noChange : t.map.noValue} />
        )}
      </ul>
    </details>
  );
}

function Swatch({ colour }: { colour: Rgb }) {
  return <span class="map-swatch" style={{ background: css(colour) }} aria-hidden="true" />;
}

function Plain({ colour, words }: { colour: Rgb; words: string }) {
  return (
    <li>
      <span class="map-legend-row">
        <Swatch colour={colour} />
        <span class="map-legend-name">{words}</span>
      </span>
    </li>
  );
}

function Ramp({ low, high }: { low: number; high: number }) {
  const theme = presentTheme.value;
  const stops = Array.from({ length: RAMP_STEPS + 1 }, (_, step) => css(rampColour(theme, step / RAMP_STEPS)));
  return (
    <div class="map-legend map-ramp">
      <span class="number">{number(low)}</span>
      <span class="map-ramp-bar" style={{ background: `linear-gradient(to right, ${stops.join(", ")})` }} />
      <span class="number">{number(high)}</span>
    </div>
  );
}
