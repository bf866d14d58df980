import type { DuplicateGroup, MemberFacts } from "../api/types";
import { date, number, share, size } from "../lib/format";
import { facts as texts } from "../texts/findings";

interface Props {
  group: DuplicateGroup;
  /** The ids of the members that are shown. */
  shown: readonly string[];
  keep: string;
}

type Column = keyof typeof texts.factNames;
const SHOWN_IF_DIFFERENT: readonly Column[] = ["cropped", "colour"];

/** The facts of the members of a group that tell an original from its copies; what differs is bold. */
export function FactsTable({ group, shown, keep }: Props) {
  if (!group.facts?.length) return null;
  const rows = shown.map((id) => {
    const place = group.media_ids.indexOf(id);
    return { id, name: group.file_names[place]!, words: wordsOf(group.facts![place]!) };
  });
  const differs = (name: Column): boolean => new Set(rows.map((row) => row.words[name])).size > 1;
  const columns = (Object.keys(texts.factNames) as Column[]).filter(
    (name) => rows.some((row) => row.words[name] !== "") && (!SHOWN_IF_DIFFERENT.includes(name) || differs(name)),
  );
  return (
    <div class="table-box">
      <table class="facts-table" aria-label={texts.factsOf}>
        <thead>
          <tr>
            <th scope="col">{texts.member}</th>
            {columns.map((name) => (
              <th key={name} scope="col">
                {texts.factNames[name]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">
                {row.id === keep && "★ "}
                {row.name}
              </th>
              {columns.map((name) => (
                <td key={name} class="number">
                  {differs(name) ? <b>{row.words[name]}</b> : row.words[name]}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function wordsOf(facts: MemberFacts): Record<Column, string> {
  const whether = (value?: boolean | null): string => (value == null ? "" : value ? texts.yes : texts.no);
  const megapixels = (value?: number | null): string => (value == null ? "" : number(value / 1e6));
  return {
    size: facts.width == null || facts.height == null ? "" : `${facts.width} × ${facts.height}`,
    detail_pixels: megapixels(facts.detail_pixels),
    quality: facts.quality == null ? "" : String(facts.quality),
    recompressed: whether(facts.recompressed),
    clipped: facts.clipped == null ? "" : share(facts.clipped),
    added_pixels: megapixels(facts.added_pixels),
    cropped: whether(facts.cropped),
    colour: whether(facts.colour),
    metadata: whether(facts.metadata),
    size_bytes: facts.size_bytes == null ? "" : size(facts.size_bytes),
    modified_at: facts.modified_at == null ? "" : date(facts.modified_at),
  };
}
