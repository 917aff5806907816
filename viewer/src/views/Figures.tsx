// The report's own figures, drawn when the page was made; the page only shows them.
import type { Book } from "../data/book";
import type { Figure } from "../data/tables";
import { Choose } from "../parts/Field";
import { Drawing } from "../parts/Drawing";
import type { Store } from "../state";
import { plural } from "../words";

export function Figures({ book, state, set }: { book: Book } & Store) {
  const attributes = [...new Map(book.figures.map((one) => [one.attribute, one.title]))];
  const by = attributes.some(([name]) => name === state.by) ? state.by : "";
  const shown = book.figures.filter((one) => !by || one.attribute === by);
  const parts = new Map<string, Figure[]>();
  for (const one of shown) {
    const key = `${one.run} ${one.attribute}`;
    parts.set(key, [...(parts.get(key) ?? []), one]);
  }
  return (
    <>
      <div class="toolbar" role="search" aria-label="Choose">
        <Choose label="Groups by" value={by} onChange={(chosen) => set({ by: chosen })} choices={[{ value: "", text: "all of them" }, ...attributes.map(([name, title]) => ({ value: name, text: title }))]} />
      </div>
      <p class="counted" role="status" aria-live="polite">{plural(shown.length, "figure", "figures")}, as the report draws them</p>
      {book.said.holds.undrawn ? <p class="note">Not drawn: {book.said.holds.undrawn}.</p> : null}
      {[...parts].map(([key, figures]) => (
        <section key={key} class="drawings">
          <h2><bdi>{figures[0]!.title}</bdi></h2>
          {book.said.runs.length > 1 ? <p class="note"><bdi>{book.said.runs[figures[0]!.run]!.title}</bdi></p> : null}
          {figures.map((one) => <Drawing figure={one} key={one.row} />)}
        </section>
      ))}
      <svg width="0" height="0" aria-hidden="true" focusable="false" class="unseen">
        <defs>
          <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="6" height="6" fill="#ffffff" /><rect width="1.3" height="6" fill="#c4c4c4" />
          </pattern>
        </defs>
      </svg>
    </>
  );
}
