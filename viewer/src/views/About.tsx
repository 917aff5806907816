import type { Book } from "../data/book";
import type { Paper } from "../data/manifest";
import { percent } from "../words";

export function About({ book }: { book: Book }) {
  const holds = book.said.holds;
  return (
    <div class="about">
      <section>
        <h2>What this page holds about people</h2>
        <p>
          {holds.people
            ? "Single people: their ids, their groups and their scores. Whoever has this page has those."
            : `Groups only: their values, and how many people scored what. No id, no attribute and no score of a single person; no spread of scores, and no count of who gained and lost, of groups of fewer than ${holds.fewest} or whose value is withheld. A group of few people can still tell of them; a page made with --publish-min hides those.`}
        </p>
      </section>
      {book.said.runs.map((run, i) => (
        <section key={i}>
          <h2><bdi>{run.title}</bdi></h2>
          <dl>
            {([
              ["Data", run.dataset], ["Licence", run.licence], ["Citation", run.citation], ["Who judged the groups", run.label_source],
              ["Intervals", percent(run.level)], ["Made", [run.created.replace("T", " ").slice(0, 16), `isolux ${run.version}`].join(", ")],
            ] as [string, string][]).filter(([, text]) => text).map(([term, text]) => (
              <div key={term}><dt>{term}</dt><dd><bdi>{text}</bdi></dd></div>
            ))}
          </dl>
          {run.limits.length ? <><h3>What the numbers cannot say</h3><ul>{run.limits.map((text) => <li key={text}>{text}</li>)}</ul></> : null}
          {run.paper ? <AsPrinted paper={run.paper} /> : null}
          {run.notes.length ? <><h3>Notes</h3><ul>{run.notes.map((text) => <li key={text}>{text}</li>)}</ul></> : null}
        </section>
      ))}
    </div>
  );
}

function AsPrinted({ paper }: { paper: Paper }) {
  return (
    <>
      <h3>As the paper prints it: <bdi>{paper.title}</bdi></h3>
      <p class="note">This audit followed <code>{paper.name}</code>. The groups of this page say how sure these numbers are.</p>
      {paper.absent.map(([caption, why]) => <p class="note" key={caption}><bdi>{caption}</bdi>: not printed, as {why}.</p>)}
      {paper.tables.map((table) => (
        <div class="printed" key={table.caption} tabIndex={0} role="region" aria-label={table.caption}>
          <table>
            <caption><bdi>{table.caption}</bdi></caption>
            <thead><tr>{table.columns.map((name, i) => <th key={i} scope="col"><bdi>{name}</bdi></th>)}</tr></thead>
            <tbody>{table.rows.map((row, i) => <tr key={i}>{row.map((cell, k) => <td key={k}><bdi>{cell}</bdi></td>)}</tr>)}</tbody>
          </table>
        </div>
      ))}
      {paper.disagreements.length ? <><h4>Where the paper contradicts itself</h4><ul>{paper.disagreements.map((text) => <li key={text}>{text}</li>)}</ul></> : null}
    </>
  );
}
