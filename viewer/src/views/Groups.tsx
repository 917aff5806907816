import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { chosen, place, type Book } from "../data/book";
import { lineKey } from "../data/manifest";
import type { Group } from "../data/tables";
import { Axis } from "../parts/Axis";
import { Choose, Search, type Choice } from "../parts/Field";
import { Spark } from "../parts/Histogram";
import { Interval } from "../parts/Interval";
import { Rows, type Column } from "../parts/Rows";
import { scaleOf, type Scale } from "../parts/scale";
import { Status } from "../parts/Status";
import { matcher, shown, sorted } from "../select";
import type { Store } from "../state";
import { count, gapUnitOf, intervalText, percent, pText, unitOf, valueText } from "../words";
import { Detail } from "./Detail";

const NARROW = "(max-width: 52rem)";
const TALL = 46;
const TALL_NARROW = 108;

export function useNarrow(): boolean {
  const [narrow, set] = useState(() => window.matchMedia(NARROW).matches);
  useEffect(() => {
    const found = window.matchMedia(NARROW);
    const follow = () => set(found.matches);
    found.addEventListener("change", follow);
    return () => found.removeEventListener("change", follow);
  }, []);
  return narrow;
}

export function attributeChoices(book: Book, attributes: number[]): Choice[] {
  const named = attributes.map((i) => book.said.attributes[i]!);
  return [
    { value: "", text: "all of them" },
    ...named.map((one) => ({
      value: one.name, text: one.title, under: one.parts.length > 1 ? "Intersections" : "Attributes",
    })),
  ];
}

const KEYS: Record<string, (group: Group) => number | string | null> = {
  group: (group) => group.group,
  n: (group) => group.n_units,
  value: (group) => group.value,
  difference: (group) => group.difference,
  p: (group) => group.difference_p,
  state: (group) => (group.status === "ok" ? 0 : group.status),
};

export function identity(group: Group): string {
  return `${group.attribute}\u0000${group.group}\u0000${group.values.join("\u0000")}`;
}

export function Groups({ book, state, set }: { book: Book } & Store) {
  const narrow = useNarrow();
  const { model, line, lines, attribute } = chosen(book, state);
  const said = book.said.lines[line]!;
  const run = book.said.runs[book.said.models[model]!.run]!;
  const attributes = book.attributesOf(model, line);
  const everyone = book.everyone(model, line);
  const every = useMemo(
    () => (attribute >= 0 ? [attribute] : attributes).flatMap((one) => book.of(model, line, one)),
    [book, model, line, attribute],
  );
  const rows = useMemo(() => {
    const fits = matcher(state.q);
    const kept = every.filter((group) => {
      const title = book.said.attributes[group.attribute]?.title ?? "";
      return fits(`${group.group} ${title}`) && shown(group, state.show, run.alpha);
    });
    const falling = state.sort.startsWith("-");
    const key = KEYS[state.sort.replace(/^-/, "")];
    if (key) return sorted(kept, key, falling);
    // Worst first; people whose value is unknown are no group that a model serves worst.
    const known = (group: Group) => (group.values.includes("unknown") ? null : group.value);
    return sorted(sorted(kept, KEYS.value!, said.direction === "lower"), known, said.direction === "lower");
  }, [every, state.q, state.show, state.sort]);
  const scale = useMemo(() => {
    const ends = rows.flatMap((group) => [group.value, group.low, group.high]);
    const bounds: [number, number] | undefined = said.unit === "fraction" ? [-1, 1] : undefined;
    return scaleOf([...ends, everyone?.value ?? null], narrow ? 3 : 5, bounds);
  }, [rows, everyone, narrow]);
  const opened = every.find((group) => group.group === state.group && book.said.attributes[group.attribute]?.name === state.of) ?? null;
  const spreads = said.bins !== null;
  const draw = spreads && state.draw === "spread" ? "spread" : "intervals";
  const last = useRef<string>("");
  const open = (group: Group) => {
    last.current = group.group;
    const again = opened !== null && identity(opened) === identity(group);
    set({ group: again ? "" : group.group, of: again ? "" : book.said.attributes[group.attribute]!.name }, true);
  };
  const close = () => {
    set({ group: "", of: "" }, true);
    const back = rows.findIndex((group) => group.group === state.group);
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-at="${back}"]`)?.focus());
  };

  return (
    <>
      <Toolbar book={book} state={state} set={set} model={model} line={line} lines={lines} attributes={attributes} attribute={attribute} narrow={narrow} spreads={spreads} draw={draw} />
      <Lead book={book} model={model} line={line} attribute={attribute} />
      <p class="counted" role="status" aria-live="polite">
        {rows.length === every.length ? `${count(rows.length)} groups` : `${count(rows.length)} of ${count(every.length)} groups`}
      </p>
      <div class={`split${opened ? " with" : ""}`}>
        <div class="listing">
          {rows.length ? (
            <Rows
              label={`${said.title} by group`} class={`groups ${draw}`} rows={rows} pinned={everyone ? [everyone] : []}
              id={identity} name={(group) => group.attribute < 0 ? "overall" : group.group}
              under={(group) => (attribute < 0 && group.attribute >= 0 ? book.said.attributes[group.attribute]!.title : "")}
              height={narrow ? TALL_NARROW : TALL} columns={columns(book, model, line, scale, everyone, draw)}
              sort={state.sort} onSort={(sort) => set({ sort })} open={opened ? identity(opened) : null} onOpen={open}
            />
          ) : <p class="none">No group is called so, or fits the filter. <button type="button" onClick={() => set({ q: "", show: "all" })}>Show all groups</button></p>}
          <Legend fewest={book.said.holds.fewest} draw={draw} level={run.level} alpha={run.alpha} adjusted={run.adjusted} />
        </div>
        {opened ? <Detail book={book} state={state} set={set} group={opened} onClose={close} /> : null}
      </div>
    </>
  );
}

interface ToolbarProps extends Store {
  book: Book;
  model: number;
  line: number;
  lines: number[];
  attributes: number[];
  attribute: number;
  narrow: boolean;
  spreads: boolean;
  draw: string;
}

function Toolbar(props: ToolbarProps) {
  const { book, state, set } = props;
  const models = book.said.models;
  const said = book.said.lines[props.line]!;
  return (
    <div class="toolbar" role="search" aria-label="Choose and filter">
      {models.length > 1 ? (
        <Choose label="Model" value={models[props.model]!.name} choices={models.map((one) => ({ value: one.name, text: one.name }))} onChange={(value) => set({ model: value })} />
      ) : null}
      <Choose
        label="Metric" value={lineKey(book.said.lines[props.line]!)}
        choices={props.lines.map((i) => ({ value: lineKey(book.said.lines[i]!), text: book.said.lines[i]!.title }))}
        onChange={(value) => set({ metric: value })}
      />
      <Choose
        label="Groups by" value={book.said.attributes[props.attribute]?.name ?? ""} choices={attributeChoices(book, props.attributes)}
        onChange={(value) => set({ by: value, group: "", of: "" })}
      />
      <Search label="Search groups" value={state.q} onInput={(q) => set({ q })} />
      <Choose
        label="Show" value={state.show} onChange={(show) => set({ show })}
        choices={[
          { value: "all", text: "all groups" },
          { value: "differ", text: "those that differ from everyone" },
          { value: "judged", text: "those that were judged" },
          { value: "unjudged", text: "those that were not judged" },
        ]}
      />
      {props.spreads ? (
        <Choose label="Draw" value={props.draw} onChange={(draw) => set({ draw })} choices={[{ value: "intervals", text: "values and intervals" }, { value: "spread", text: "spread of scores" }]} />
      ) : null}
      {props.narrow ? (
        <Choose
          label="Sort by" value={state.sort} onChange={(sort) => set({ sort })}
          choices={[
            { value: "", text: said.direction === "none" ? "lowest first" : "worst first" }, { value: "group", text: "name" }, { value: "-n", text: "most units" },
            { value: "value", text: "lowest value" }, { value: "-value", text: "highest value" },
            { value: "difference", text: "furthest below everyone" }, { value: "-difference", text: "furthest above everyone" },
          ]}
        />
      ) : null}
    </div>
  );
}

function Lead({ book, model, line, attribute }: { book: Book; model: number; line: number; attribute: number }) {
  const said = book.said.lines[line]!;
  const run = book.said.runs[book.said.models[model]!.run]!;
  const name = book.said.attributes[attribute]?.name;
  const main = book.linesOf(model)[0] === line;
  const verdict = main ? run.verdicts.find((one) => one.attribute === name) : undefined;
  const test = verdict ? undefined : book.tests.find((one) => one.model === model && one.line === line && one.attribute === attribute);
  const better = { higher: "Higher is better.", lower: "Lower is better.", none: "" }[said.direction];
  return (
    <div class="lead">
      <p>{said.definition ? `${said.title}: ${said.definition}` : said.title} {better}</p>
      {verdict ? <p><strong>{verdict.text}</strong> {verdict.unknown}</p> : null}
      {test && test.p_adjusted !== null ? (
        <p><strong>{test.p_adjusted <= run.alpha ? "The test says that these groups differ" : "The test finds no difference between these groups"}</strong> ({run.adjusted} p {test.p_adjusted < 0.001 ? "" : "= "}{pText(test.p_adjusted)}).</p>
      ) : null}
      {test && test.p_adjusted === null ? <p><strong>Whether these groups differ was not tested</strong>{test.reason ? `: ${test.reason}` : ""}.</p> : null}
    </div>
  );
}

function columns(book: Book, model: number, line: number, scale: Scale, everyone: Group | null, draw: string): Column<Group>[] {
  const said = book.said.lines[line]!;
  const run = book.said.runs[book.said.models[model]!.run]!;
  const unit = said.unit;
  const all = book.spread.get(place(model, line, -1, "overall"))?.counts ?? null;
  const differs = (group: Group) => group.difference_p !== null && group.difference_p <= run.alpha;
  const drawn = (group: Group) => {
    if (draw === "spread") {
      const own = book.spread.get(place(model, line, group.attribute, group.group));
      return own ? <Spark counts={own.counts} everyone={all} /> : null;
    }
    return <Interval marks={[{ ...group, hollow: group.status !== "ok", strong: differs(group) }]} scale={scale} everyone={everyone?.value ?? null} />;
  };
  return [
    { key: "group", title: "Group", sorts: true, cell: () => null },
    { key: "n", title: "Units", sorts: true, class: "number", cell: (group) => <span data-v={group.n_units}>{count(group.n_units)}</span> },
    {
      key: "drawn", title: draw === "spread" ? <span class="over">Scores, low to high</span> : <><span class="unseen">Drawn with its interval</span><Axis scale={scale} unit={unit} /></>,
      cell: drawn,
    },
    {
      key: "value", title: `${said.title}${unit ? ` (${unitOf(unit)})` : ""}`, sorts: true, class: "number",
      cell: (group) => (
        <>
          <span data-v={group.value ?? ""} class="big">{valueText(group.value, unit)}</span>
          <small data-low={group.low ?? ""} data-high={group.high ?? ""}>{group.value === null ? group.status : group.low === null ? "" : intervalText(group.low, group.high, unit)}</small>
        </>
      ),
    },
    {
      key: "difference", title: `Against everyone${unit ? ` (${gapUnitOf(unit)})` : ""}`, sorts: true, class: "number",
      cell: (group) => group.difference === null ? <span data-v="">{group.attribute < 0 ? "" : "–"}</span> : (
        <>
          <span data-v={group.difference}>{valueText(group.difference, unit, true)}</span>
          <small>{intervalText(group.difference_low, group.difference_high, unit)}</small>
        </>
      ),
    },
    {
      key: "p", title: `${run.adjusted === "adjusted" ? "Adjusted" : "Unadjusted"} p`, sorts: true, class: "number",
      cell: (group) => <span data-v={group.difference_p ?? ""} class={differs(group) ? "differs" : ""}>{group.attribute < 0 ? "" : pText(group.difference_p)}</span>,
    },
    { key: "state", title: "Status", sorts: true, cell: (group) => <Status status={group.status} reason={group.reason} /> },
  ];
}

function Legend({ fewest, draw, level, alpha, adjusted }: { fewest: number; draw: string; level: number; alpha: number; adjusted: string }) {
  if (draw === "spread") {
    return <p class="note">Bars: share of the group’s units at each score. Grey behind them: everyone. Counts, not estimates: no test belongs to them.{fewest ? ` No spread of groups of fewer than ${fewest}, of groups whose value is withheld, or of one that would give those away.` : ""}</p>;
  }
  return (
    <p class="note legend">
      <svg class="sample" aria-hidden="true" focusable="false" viewBox="0 0 40 14"><line class="whisker" x1="4" x2="36" y1="7" y2="7" /><circle cx="20" cy="7" r="4.5" /></svg>
      value with its {percent(level)} interval
      <svg class="sample strong" aria-hidden="true" focusable="false" viewBox="0 0 40 14"><line class="whisker" x1="4" x2="36" y1="7" y2="7" /><circle cx="20" cy="7" r="4.5" /></svg>
      differs from everyone ({adjusted} p at most {Number(alpha.toPrecision(6))})
      <svg class="sample" aria-hidden="true" focusable="false" viewBox="0 0 40 14"><line class="whisker" x1="4" x2="36" y1="7" y2="7" /><circle class="hollow" cx="20" cy="7" r="4.5" /></svg>
      read with caution
      <svg class="sample" aria-hidden="true" focusable="false" viewBox="0 0 40 14"><line class="overall" x1="20" x2="20" y1="0" y2="14" /></svg>
      overall
      {adjusted === "adjusted" ? <span>Each interval is of one value or difference by itself; p is adjusted for every comparison.</span> : null}
    </p>
  );
}
