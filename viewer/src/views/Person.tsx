import { useEffect, useRef } from "preact/hooks";
import type { Book } from "../data/book";
import { groupNames, reasonOf, scoresOf, textOf, type People } from "../data/people";
import { Picture } from "../parts/Picture";
import { brief, percent, withUnit } from "../words";

/** All that is known of one person. */
export function Person({ book, held, person, onClose }: { book: Book; held: People; person: number; onClose: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const id = held.ids[person]!;
  useEffect(() => heading.current?.focus({ preventScroll: true }), [id]);
  const models = book.said.models.map((one, i) => ({ ...one, i })).filter((one) => one.run === held.run);
  const truth = textOf(held, "truth", person);
  return (
    <section class="detail" aria-labelledby="person-title" onKeyDown={(event) => { if (event.key === "Escape") onClose(); }}>
      <div class="bar">
        <h2 id="person-title" tabIndex={-1} ref={heading}><bdi title={id}>{brief(id)}</bdi></h2>
        <button type="button" class="close" onClick={onClose}>Close</button>
      </div>
      {book.said.holds.pictures ? <Picture run={held.run} id={id} /> : null}
      <dl>
        {held.facets.map((facet, f) => <div key={facet.name}><dt><bdi>{facet.title}</bdi></dt><dd><bdi>{groupNames(held, f, person) || "not known"}</bdi></dd></div>)}
        {truth === null ? null : <div><dt>truth</dt><dd><bdi>{truth}</bdi></dd></div>}
      </dl>
      {models.map((model) => {
        const answer = textOf(held, `answer${model.i}`, person);
        const sure = held.columns[`confidence${model.i}`]?.[person] as number | null | undefined;
        const asked = `answer${model.i}` in held.columns;
        return (
          <div key={model.i}>
            <h3><bdi>{model.name}</bdi></h3>
            {asked ? <p>Answer: <strong><bdi>{answer ?? "none"}</bdi></strong>{typeof sure === "number" ? ` (${percent(Number(sure.toPrecision(3)))} sure)` : ""}</p> : null}
            <dl>
              {book.said.lines.map((line, i) => {
                const scores = scoresOf(held, model.i, i);
                const value = scores?.[person];
                const why = reasonOf(held, model.i, i, person);
                if (!scores || ((value === null || value === undefined) && !why)) return null;
                return <div key={i}><dt>{line.title}</dt><dd>{value === null || value === undefined ? `no score: ${why}` : withUnit(value, line.unit)}</dd></div>;
              })}
            </dl>
          </div>
        );
      })}
      {book.said.holds.served && !book.said.holds.pictures ? <p class="note">No picture is shown: start the viewer with --images FOLDER, where the licence allows it.</p> : null}
    </section>
  );
}
