import { useEffect, useRef } from "preact/hooks";
import type { Book } from "./data/book";
import { useStore, hashOf, type State, type View } from "./state";
import { plural } from "./words";
import { About } from "./views/About";
import { Figures } from "./views/Figures";
import { Findings } from "./views/Findings";
import { Compare } from "./views/Compare";
import { Groups } from "./views/Groups";
import { People } from "./views/People";

function views(book: Book): [View, string][] {
  const found: [View, string][] = [["groups", "Groups"]];
  if (book.said.models.length > 1) found.push(["compare", "Two models"]);
  if (book.said.holds.people) found.push(["people", "People"]);
  found.push(["findings", `Findings (${book.findings.length})`]);
  if (book.said.holds.figures) found.push(["figures", "Figures"]);
  found.push(["about", "About this run"]);
  return found;
}

export function App({ book }: { book: Book }) {
  const { state, set } = useStore();
  const main = useRef<HTMLElement>(null);
  const tabs = views(book);
  const view = tabs.some(([name]) => name === state.view) ? state.view : "groups";
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    else main.current?.focus({ preventScroll: true });
  }, [view]);
  const to = (change: Partial<State>) => hashOf({ ...state, ...change });
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the tables</a>
      <header>
        {book.said.runs.map((run, i) => (
          <div class="run" key={i}>
            {i === 0 ? <h1><bdi>{run.title}</bdi></h1> : <p class="other"><bdi>{run.title}</bdi></p>}
            {run.warnings.map((text) => <p class="caution" key={text}><strong>Warning.</strong> {text}</p>)}
            {run.cautions.filter(([headline]) => !book.said.runs.slice(0, i).some((one) => one.cautions.some(([said]) => said === headline))).map(([headline, text]) => <p class="caution" key={headline}><strong>{headline}</strong> {text}</p>)}
            {run.accounting ? <p class="what">{run.accounting}</p> : null}
            {run.answer ? <p class="answer">{run.answer}</p> : null}
            {run.further.map((text) => <p key={text}>{text}</p>)}
            <p class="what">
              {run.n_units ? `${plural(run.n_units, "unit", "units")}` : ""}
              {run.cluster ? ` in ${plural(run.n_clusters, "cluster", "clusters")} (${run.cluster})` : ""}
              {run.label_source ? ` · group labels: ${run.label_source}` : ""}
              {run.drawn && !run.answer.includes(run.drawn) ? ` · ${run.drawn}` : ""}
            </p>
          </div>
        ))}
        {book.said.holds.publish_min ? (
          <p class="caution">Made to be published: what tells of fewer than {book.said.holds.publish_min} people is left out.</p>
        ) : null}
      </header>
      <nav aria-label="Views">
        {tabs.map(([name, title]) => (
          <a key={name} href={to({ view: name, group: "", of: "", person: "", q: "", sort: "" })} aria-current={view === name ? "page" : undefined}>{title}</a>
        ))}
      </nav>
      <main id="main" tabIndex={-1} ref={main}>
        {view === "groups" ? <Groups book={book} state={state} set={set} /> : null}
        {view === "compare" ? <Compare book={book} state={state} set={set} /> : null}
        {view === "people" ? <People book={book} state={state} set={set} /> : null}
        {view === "findings" ? <Findings book={book} state={state} set={set} /> : null}
        {view === "figures" ? <Figures book={book} state={state} set={set} /> : null}
        {view === "about" ? <About book={book} /> : null}
      </main>
      <footer>
        <p>Made by isolux {book.said.runs[0]?.version}. {book.said.holds.served ? "Served by this computer to this computer alone." : "This page asks the network for nothing."}</p>
      </footer>
    </>
  );
}
