import { useEffect, useMemo, useState } from "preact/hooks";
import { chosen, type Book } from "../data/book";
import { lineKey } from "../data/manifest";
import { groupNames, people, pickedText, readPicked, scoresOf, select, textOf, type People as Held, type Picked } from "../data/people";
import { Choose, Search } from "../parts/Field";
import { Histogram } from "../parts/Histogram";
import { Rows, type Column } from "../parts/Rows";
import { Tiles } from "../parts/Tiles";
import { matcher, sorted } from "../select";
import type { Store } from "../state";
import { count, percent, plural, unitOf, valueText, withUnit } from "../words";
import { useNarrow } from "./Groups";
import { Person } from "./Person";

const FOLDED = 8;

export function usePeople(book: Book, run: number): Held | null | string {
  const [held, set] = useState<Held | null | string>(null);
  useEffect(() => {
    let live = true;
    set(null);
    people(book, run).then(
      (found) => live && set(found ?? "This page holds no single people of this run."),
      (error: unknown) => live && set(`The people cannot be read. ${error instanceof Error ? error.message : String(error)}`),
    );
    return () => { live = false; };
  }, [run]);
  return held;
}

export function People({ book, state, set }: { book: Book } & Store) {
  const { model } = chosen(book, state);
  const held = usePeople(book, book.said.models[model]!.run);
  if (held === null) return <p class="waiting">Reading the people …</p>;
  if (typeof held === "string") return <p class="none" role="alert">{held}</p>;
  return <Explorer book={book} state={state} set={set} held={held} />;
}

function Explorer({ book, state, set, held }: { book: Book; held: Held } & Store) {
  const narrow = useNarrow();
  const model = chosen(book, state).model;
  const lines = book.said.lines.map((_, i) => i).filter((i) => scoresOf(held, model, i) !== null);
  const line = lines.find((i) => lineKey(book.said.lines[i]!) === state.metric) ?? lines[0];
  if (line === undefined) return <p class="none">Single people have no score of their own in this model’s metrics.</p>;
  const said = book.said.lines[line]!;
  const run = book.said.runs[held.run]!;
  const scores = scoresOf(held, model, line)!;
  const picked = useMemo(() => readPicked(state.pick), [state.pick]);
  const found = useMemo(() => select(held, scores, picked, state.q ? matcher(state.q) : null), [held, scores, picked, state.q]);
  const scored = useMemo(() => found.chosen.filter((i) => scores[i] !== null && scores[i] !== undefined), [found, scores]);
  const mean = scored.length ? scored.reduce((sum, i) => sum + scores[i]!, 0) / scored.length : null;
  const tiled = book.said.holds.pictures && state.draw === "pictures";
  // Pictures stand worst first, until the list was sorted otherwise.
  const order = state.sort || (tiled ? (said.direction === "lower" ? "-score" : "score") : "");
  const rows = useMemo(() => {
    const key = {
      person: (i: number) => held.ids[i]!, score: (i: number) => scores[i] ?? null,
      said: (i: number) => textOf(held, `answer${model}`, i),
    }[order.replace(/^-/, "")];
    return key ? sorted(found.chosen, key, order.startsWith("-")) : found.chosen;
  }, [found, scores, order]);
  const pick = (next: Picked) => set({ pick: pickedText(next) });
  const toggle = (name: string, value: string) => {
    const next: Picked = new Map([...picked].map(([key, values]) => [key, new Set(values)]));
    const values = next.get(name) ?? new Set<string>();
    if (values.has(value)) values.delete(value);
    else values.add(value);
    next.set(name, values);
    pick(next);
  };
  const open = rows.find((i) => held.ids[i] === state.person) ?? (state.person ? held.ids.indexOf(state.person) : -1);
  const close = () => {
    set({ person: "" }, true);
    const back = rows.indexOf(open);
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-at="${back}"]`)?.focus());
  };
  return (
    <>
      <div class="toolbar" role="search" aria-label="Choose and filter">
        {book.said.models.length > 1 ? (
          <Choose label="Model" value={book.said.models[model]!.name} choices={book.said.models.map((one) => ({ value: one.name, text: one.name }))} onChange={(value) => set({ model: value })} />
        ) : null}
        <Choose label="Metric" value={lineKey(said)} choices={lines.map((i) => ({ value: lineKey(book.said.lines[i]!), text: book.said.lines[i]!.title }))} onChange={(metric) => set({ metric })} />
        {book.said.holds.pictures ? <Choose label="Show" value={tiled ? "pictures" : "list"} choices={[{ value: "list", text: "a list" }, { value: "pictures", text: "pictures, worst first" }]} onChange={(value) => set({ draw: value === "pictures" ? value : "intervals" })} /> : null}
        <Search label="Search ids" value={state.q} onInput={(q) => set({ q })} />
        {state.pick || state.q ? <button type="button" onClick={() => set({ pick: "", q: "" })}>Choose everyone again</button> : null}
      </div>
      <div class="selection">
        <p role="status" aria-live="polite">
          <strong>{plural(found.chosen.length, "unit", "units")}</strong> of {count(held.n)} chosen · {said.title}: <strong>{withUnit(mean, said.unit)}</strong>
        </p>
        <p class="note">
          <strong>Descriptive.</strong> A plain mean of {plural(scored.length, "score", "scores")}: no interval and no test belongs to it{run.drawn ? ", and weights are left out" : ""}.
          Choosing groups until a gap shows finds gaps by chance; tested values stand under Groups.
        </p>
      </div>
      <div class="facets" role="group" aria-label="Choose by attribute">
        {held.facets.map((facet, f) => (
          <FacetCard key={facet.name} facet={facet} tallies={found.tallies[f]!} picked={picked.get(facet.name) ?? new Set()} unit={said.unit} onToggle={(value) => toggle(facet.name, value)} />
        ))}
        {said.bins ? <div class="facet"><h2>How scores are spread</h2><Histogram counts={binned(scored, scores, said.bins)} everyone={null} bins={said.bins} unit={said.unit} name="the choice" unscored={found.chosen.length - scored.length} /></div> : null}
      </div>
      <div class={`split${open >= 0 ? " with" : ""}`}>
        <div class="listing">
          {tiled ? (
            <Tiles
              key={`${state.pick} ${state.q} ${order} ${line}`} run={held.run} rows={rows} id={(i) => held.ids[i]!} caption={(i) => withUnit(scores[i] ?? null, said.unit)}
              open={open >= 0 ? held.ids[open]! : null} onOpen={(i) => set({ person: held.ids[i] === state.person ? "" : held.ids[i]! }, true)}
            />
          ) : <Rows
            label="People who fit" class="people" rows={rows} id={(i) => held.ids[i]!} name={(i) => held.ids[i]!} height={narrow ? 62 : 40}
            columns={columns(held, model, scores, said.unit, said.title)} sort={state.sort} onSort={(sort) => set({ sort })}
            open={open >= 0 ? held.ids[open]! : null} onOpen={(i) => set({ person: held.ids[i] === state.person ? "" : held.ids[i]! }, true)}
          />}
        </div>
        {open >= 0 ? <Person book={book} held={held} person={open} onClose={close} /> : null}
      </div>
    </>
  );
}

function FacetCard(props: { facet: Held["facets"][number]; tallies: { n: number; sum: number }[]; picked: Set<string>; unit: string; onToggle: (value: string) => void }) {
  const [whole, setWhole] = useState(false);
  const most = Math.max(1, ...props.tallies.map((one) => one.n));
  const values = props.facet.values.map((value, i) => ({ value, ...props.tallies[i]! }));
  const shown = whole ? values : values.filter((one, i) => i < FOLDED || props.picked.has(one.value));
  return (
    <div class="facet" role="group" aria-label={props.facet.title}>
      <h2><bdi>{props.facet.title}</bdi></h2>
      <ul>
        {shown.map(({ value, n, sum }) => (
          <li key={value}>
            <button type="button" aria-pressed={props.picked.has(value)} onClick={() => props.onToggle(value)}>
              <span class="label"><bdi>{value}</bdi></span>
              <span class="count">{count(n)}</span>
              <span class="mean">{n ? withUnit(sum / n, props.unit) : "–"}</span>
              <span class="share" aria-hidden="true" style={{ width: `${(100 * n) / most}%` }} />
            </button>
          </li>
        ))}
      </ul>
      {values.length > shown.length ? <button type="button" class="link" onClick={() => setWhole(true)}>all {count(values.length)}</button> : null}
    </div>
  );
}

function binned(chosen: number[], scores: (number | null)[], bins: { low: number; high: number; n: number }): number[] {
  const counts = new Array<number>(bins.n).fill(0);
  for (const i of chosen) {
    const at = Math.floor(((scores[i]! - bins.low) / (bins.high - bins.low)) * bins.n);
    const bin = Math.max(0, Math.min(bins.n - 1, at));
    counts[bin] = counts[bin]! + 1;
  }
  return counts;
}

function columns(held: Held, model: number, scores: (number | null)[], unit: string, title: string): Column<number>[] {
  const found: Column<number>[] = [
    { key: "person", title: "Unit", sorts: true, cell: () => null },
    { key: "score", title: `${title}${unit ? ` (${unitOf(unit)})` : ""}`, sorts: true, class: "number", cell: (i) => <span data-v={scores[i] ?? ""}>{valueText(scores[i] ?? null, unit)}</span> },
  ];
  if (held.columns[`answer${model}`]) {
    const sure = (i: number) => held.columns[`confidence${model}`]?.[i] as number | null | undefined;
    found.push({
      key: "said", title: "Answer", sorts: true,
      cell: (i) => <><bdi>{textOf(held, `answer${model}`, i) ?? "none"}</bdi>{typeof sure(i) === "number" ? <small>{percent(Number(sure(i)!.toPrecision(3)))} sure</small> : null}</>,
    });
    found.push({ key: "truth", title: "Truth", cell: (i) => <bdi>{textOf(held, "truth", i) ?? "–"}</bdi> });
  }
  found.push({ key: "of", title: "Groups", cell: (i) => <small class="wraps"><bdi>{held.facets.map((_, f) => groupNames(held, f, i)).filter(Boolean).join(" · ")}</bdi></small> });
  return found;
}
