import type { SourcePreview as Preview, PreviewColumn } from "../api/types";
import { preview as texts } from "../texts/preview";
import { Problems } from "./Problems";

/** How a folder or a list on the server is understood: its columns and what they become, its first rows, its problems. */
export function SourcePreview({ of }: { of: Preview }) {
  return (
    <section class="preview" aria-labelledby="preview">
      <h2 id="preview">{texts.title}</h2>
      <p>{texts.kind(of.kind, of.delimiter ?? null, of.encoding ?? null)}</p>
      {of.found !== null && of.files > 0 && (
        <p class={of.found < of.files ? "problem" : "hint"}>{texts.found(of.found, of.files)}</p>
      )}
      {of.missing.length > 0 && <p class="hint path">{of.missing.join(", ")}</p>}
      <ul class="notes">
        {of.layout.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {of.columns.length > 0 ? (
        <div class="table-box">
          <table>
            <thead>
              <tr>
                {of.columns.map((column, at) => (
                  <th key={at} scope="col" title={column.reason ?? undefined}>
                    {column.name}
                    <br />
                    <small>{use(column)}</small>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {of.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, column) => (
                    <td key={column}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <ul class="notes">
          {of.rows.map(([path]) => (
            <li key={path} class="path">
              {path}
            </li>
          ))}
        </ul>
      )}
      <Problems of={of.problems} />
    </section>
  );
}

function use(column: PreviewColumn): string {
  return column.becomes === "field" ? texts.field(column.type) : texts.uses[column.becomes];
}
